"""Deletions and edits in the middle of a context or of a dream pass."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shared.context import build
from shared.infra.language_model import LanguageModel
from tests.conftest import Gateway

Deletion = Callable[[], Awaitable[Any]]


def delete_after_gathering(monkeypatch: pytest.MonkeyPatch, delete: Deletion) -> None:
    """Let the next context be gathered, then delete something, then let the context go on."""
    gather = build.gather  # type: ignore[attr-defined]

    async def gather_and_delete(*arguments: Any) -> Any:
        inputs = await gather(*arguments)
        monkeypatch.setattr(build, "gather", gather)
        await delete()
        return inputs

    monkeypatch.setattr(build, "gather", gather_and_delete)


def delete_while_thinking(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway, path: str, method: str = "DELETE", **request: Any
) -> None:
    """Delete something, or edit it, after the model's next reply and before the pass records."""
    model = gateway.resources.language_model
    assert model is not None
    complete = LanguageModel.complete

    async def complete_and_delete(self: LanguageModel, *arguments: Any, **more: Any) -> Any:
        reply = await complete(self, *arguments, **more)
        monkeypatch.setattr(LanguageModel, "complete", complete)
        response = await gateway.client.request(method, path, **request)
        assert response.is_success, response.text
        return reply

    monkeypatch.setattr(LanguageModel, "complete", complete_and_delete)
