"""What models really reply to a consolidation: valid plans with other text around them, and no plans."""

from collections.abc import Callable
from typing import Any

import pytest

from shared.foundation import config
from tests.conftest import Gateway, running_gateway
from tests.integration.dreams.conftest import live, merge_reply, run_dream, save_memories
from tests.standins.behaviours import EmptyChoices, Fenced, Hang, Refusal, Reply, Thinking, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour


async def consolidate(model_gateway: Gateway, **more: Any) -> dict[str, Any]:
    run = await run_dream(model_gateway, passes=["consolidate", "extract_episodes"], **more)
    assert run["state"] == "done"
    return dict(run["passes"][0])


@pytest.mark.parametrize("wrap", [Thinking, Fenced, lambda text: Reply(f"Sure!\n{text}\nDone.")])
async def test_a_plan_is_applied_whatever_text_surrounds_it(
    model_gateway: Gateway, models: ModelServer, wrap: Callable[[str], Behaviour]
) -> None:
    models.chat_default = wrap(str(merge_reply(await save_memories(model_gateway)).text))
    assert (await consolidate(model_gateway))["applied"] == {"created": 1, "archived": 3}


async def test_nothing_of_a_truncated_plan_is_applied(model_gateway: Gateway, models: ModelServer) -> None:
    """The merge comes last and is truncated: not even the whole deletion before it is applied."""
    ids = await save_memories(model_gateway)
    text = str(merge_reply(ids).text)
    models.chat_default = Truncated(text, keep=text.index("12 Rue Neuve"))
    assert (await consolidate(model_gateway))["applied"] == {}
    assert set(await live(model_gateway)) == {*ids}


@pytest.mark.parametrize("reply", [Refusal(), EmptyChoices(), Reply("I would rather not."), Reply("{}")])
async def test_a_reply_that_is_no_plan_changes_nothing_and_ends_the_pass_with_its_reason(
    model_gateway: Gateway, models: ModelServer, reply: Behaviour
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = reply
    result = await consolidate(model_gateway)
    assert (result["state"], result["applied"]) == ("failed", {})
    assert result["reason"]
    assert set(await live(model_gateway)) == set(ids)
    assert len(models.chat_calls) == 2, "the model is asked once more and not a third time"


async def test_a_run_waits_for_a_model_that_does_not_answer_and_ends_when_it_does(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> None:
    settings = make_settings(
        llm_base_url=models.url, llm_model="m", llm_timeout=0.3, job_max_attempts=2, job_backoff=0.01
    )
    async with running_gateway(settings, tenant) as model_gateway:
        ids = await save_memories(model_gateway)
        models.chat_replies.extend([Hang()] * 4)
        models.chat_default = merge_reply(ids)
        assert (await consolidate(model_gateway))["state"] == "done"
