"""Changes between a question to the model and its answer."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.integration.summary.conftest import Talk

Change = Callable[[Talk], Awaitable[Any]]


def before_the_answer(talk: Talk, monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """Let something change between the first question to the model and its answer."""
    model = talk.gateway.resources.language_model
    assert model is not None
    complete = model.complete

    async def change_and_complete(*question: Any) -> Any:
        monkeypatch.setattr(model, "complete", complete)
        reply = await complete(*question)
        await change(talk)
        return reply

    monkeypatch.setattr(model, "complete", change_and_complete)
