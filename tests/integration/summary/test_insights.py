"""CV3, FG1: what was noted in a scratchpad is in one summary, but for what goes with something else."""

import asyncio
from datetime import datetime
from typing import Any

import pytest

from shared.conversation.sessions import queries as session_queries
from shared.conversation.summary import queries as summary_queries
from tests.integration.playbooks.conftest import find, record
from tests.integration.scratchpad.conftest import snippets
from tests.integration.summary.conftest import Talk, conversation_of, numbers
from tests.integration.summary.interruptions import before_the_answer
from tests.locks import wait_until_blocked
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

SECRET = "marmalade"


async def test_what_is_noted_while_the_model_thinks_is_in_the_next_summary(
    talk: Talk, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def note_more(talk: Talk) -> None:
        await talk.note("The harbour is closed.")
        await talk.note("The bridge is open.")

    await talk.note("The bridge is open.")
    await talk.say(1, 6)
    before_the_answer(talk, monkeypatch, note_more)
    await talk.drain()
    await talk.say(7, 8)
    await talk.drain()
    await talk.say(9, 10)
    await talk.drain()
    assert [_insights(call) for call in models.chat_calls] == [
        ["The bridge is open."],
        ["The bridge is open.", "The harbour is closed."],
        [],
    ]


@pytest.mark.parametrize("times", [1, 2])
async def test_what_waits_while_the_scratchpad_is_read_is_noted_after_that(talk: Talk, times: int) -> None:
    resources, tenant, content = talk.gateway.resources, talk.gateway.tenant, "The harbour is closed."
    for _ in range(times - 1):
        await talk.note(content)
    async with resources.postgres.for_tenant(tenant) as tx:
        session = await session_queries.lock_by_id(tx, talk.session, 3600)
        assert session is not None
        note = asyncio.create_task(talk.note(content))
        await wait_until_blocked(tx, note)
        _, read_at = await summary_queries.find_times(tx, session)
    await note
    [snippet] = await snippets(talk.agent, talk.session)
    assert snippet["count"] == times
    assert datetime.fromisoformat(snippet["updated_at"]) > read_at


@pytest.mark.parametrize("changes", [{"llm_prompt_tokens": 2500}])
async def test_many_long_insights_leave_room_for_the_turns(talk: Talk, models: ModelServer) -> None:
    for number in range(40):
        await talk.note(f"Insight {number}: {'ж' * 1000}")
    await talk.say(1, 6)
    await talk.drain()
    assert await talk.shown() == (numbers(1, 2), numbers(3, 6), [])
    [call] = models.chat_calls
    assert sum(len(message["content"].encode()) for message in call.body["messages"]) <= 3 * 2500
    assert _insights(call)[-1].startswith("Insight 39: ж")
    assert _insights(call)[-1].endswith("[shortened]")


@pytest.mark.parametrize("changes", [{"llm_prompt_tokens": 2500}])
async def test_short_insights_stay_whole_beside_long_ones(talk: Talk, models: ModelServer) -> None:
    await talk.note("x" * 4000)
    await talk.note("The harbour is closed.")
    await talk.say(1, 6)
    await talk.drain()
    assert _insights(models.chat_calls[0])[-1] == "The harbour is closed."


@pytest.mark.parametrize("changes", [{"llm_prompt_tokens": 2500}])
async def test_a_summary_longer_than_a_prompt_is_not_the_last_one(talk: Talk, models: ModelServer) -> None:
    models.chat_default = Reply("They-talked-about-it. " * 600)
    await talk.say(1, 6)
    await talk.drain()
    models.chat_default = Reply("It went on.")
    await talk.say(7, 8)
    await talk.drain()
    assert await talk.shown() == ("It went on.", numbers(5, 8), [])
    assert "[shortened]" in conversation_of(models.chat_calls[-1])["summary_so_far"]


async def test_a_copy_of_a_playbook_is_in_no_summary(talk: Talk, models: ModelServer) -> None:
    await record(talk.agent, user_id="ada", user_query=f"Buy {SECRET}.")
    await find(talk.agent, flow="book_flight", session_id=talk.session)
    await talk.note("The harbour is closed.")
    await talk.say(1, 6)
    await talk.drain()
    assert [_insights(call) for call in models.chat_calls] == [["The harbour is closed."]]
    assert not any(SECRET in call.prompt for call in models.chat_calls)


def _insights(call: Call) -> list[Any]:
    return list(conversation_of(call).get("insights", []))
