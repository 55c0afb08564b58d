"""CV3: with a model, the window moves when a summary of the turns before it is stored."""

import json
import re
from typing import Any

import pytest
from sqlalchemy import select

from shared.conversation.scratchpad.snippet import MANY_SNIPPETS
from shared.jobs.table import fleet_counter, job
from tests.agent import find_block
from tests.idle_sessions import make_idle
from tests.integration.forgetting.interruptions import delete_after_gathering
from tests.integration.summary.conftest import Talk, conversation_of, joined, numbers
from tests.standins.behaviours import Reply, Status, Thinking, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire


async def test_a_full_window_stays_until_its_summary_is_stored_and_then_moves_by_a_step(
    talk: Talk, models: ModelServer
) -> None:
    await talk.say(1, 5)
    assert (await talk.pending(), await talk.shown()) == (0, (None, numbers(1, 5), []))
    await talk.say(6, 6)
    assert (await talk.pending(), await talk.shown()) == (1, (None, numbers(1, 6), []))
    await talk.drain()
    assert (await talk.pending(), await talk.shown()) == (0, (numbers(1, 2), numbers(3, 6), []))
    await talk.say(7, 8)
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), numbers(5, 8), [])
    assert [conversation_of(call).get("summary_so_far") for call in models.chat_calls] == [None, "#1 #2"]
    summary = await talk.stored()
    assert summary is not None
    assert (summary.first_seq, summary.last_seq, summary.model) == (1, 4, "m")


async def test_the_summary_stands_after_the_pinned_texts_is_stable_and_is_kept_under_a_budget(
    talk: Talk,
) -> None:
    await talk.agent.request("PUT", "/v1/pinned/tone", json={"content": "Be brief."})
    await talk.say(1, 6)
    await talk.drain()
    system: dict[str, Any] = {"system": "You help.", "record_turn": False}
    context = await talk.agent.context(talk.session, "now?", **system)
    assert [message["role"] for message in context["messages"][:4]] == ["system"] * 3 + ["assistant"]
    assert [block["kind"] for block in context["blocks"]] == ["core", "summary"]
    block = find_block(context, "summary")
    assert block is not None
    assert (block["stability"], block["ids"]) == ("stable", ["talk#summary"])
    assert context["messages"][2]["content"] == block["text"]
    small = await talk.agent.context(talk.session, "now?", max_tokens=1, blocks=["recalled"], **system)
    assert [message["content"] for message in small["messages"]][1:] == [
        context["messages"][1]["content"],
        block["text"],
        "now?",
    ]


async def test_a_context_that_is_recorded_after_the_step_shows_what_is_stored_by_then(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk.say(1, 6)
    delete_after_gathering(monkeypatch, talk.drain)
    context = await talk.agent.context(talk.session, "#7")
    assert find_block(context, "summary") is not None
    contents = [message["content"] for message in context["messages"]]
    assert [content for content in contents if content.startswith("#")] == numbers(3, 7).split()


async def test_while_the_model_is_away_the_window_grows_to_its_maximum_and_nothing_is_forgotten(
    talk: Talk, models: ModelServer
) -> None:
    models.chat_default = Status(503)
    await talk.say(1, 9)
    await talk.drain()
    assert await talk.shown() == (None, numbers(1, 9), [])
    await talk.say(10, 10)
    await talk.drain()
    assert await talk.shown() == (None, numbers(3, 10), ["summary"])
    await talk.say(11, 12)
    assert await talk.shown() == (None, numbers(5, 12), ["summary"])
    models.chat_default = Reply(lambda call: json.dumps({"summary": joined(call)}))
    await talk.drain()
    assert await talk.shown() == (numbers(1, 8), numbers(9, 12), [])
    assert await talk.pending() == 0


async def test_after_an_hour_of_idleness_a_context_begins_with_the_summary_of_all_turns(
    talk: Talk, models: ModelServer
) -> None:
    await talk.say(1, 4)
    await talk.drain()  # it is not idle yet
    assert len(models.chat_calls) == 0
    await make_idle(talk.gateway, talk.session, idle_seconds=talk.gateway.resources.settings.window_ttl + 60)
    assert await talk.shown() == (None, "", ["summary"])
    assert await talk.pending() == 0, "it is not due before somebody has looked"
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), "", [])
    first = await talk.agent.context(talk.session, "#5")
    assert first["messages"][0]["content"] == (find_block(first, "summary") or {})["text"]
    assert await talk.shown() == (numbers(1, 4), "#5", [])


async def test_who_comes_back_before_the_summary_was_made_gets_it_made(talk: Talk) -> None:
    """Workers were away for longer than the hour."""
    await talk.say(1, 4)
    await make_idle(talk.gateway, talk.session, idle_seconds=talk.gateway.resources.settings.window_ttl + 60)
    await talk.agent.context(talk.session, "#5")
    assert await talk.shown() == (None, "#5", ["summary"])
    assert await talk.pending() == 1
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), "#5", [])


async def test_insights_go_into_the_next_summary_and_many_make_one_due(
    talk: Talk, models: ModelServer
) -> None:
    await talk.note("The harbour is closed.")
    await talk.say(1, 6)
    await talk.drain()
    assert conversation_of(models.chat_calls[-1])["insights"] == ["The harbour is closed."]
    for number in range(MANY_SNIPPETS - 2):
        await talk.note(f"Insight {number}.")
    await talk.drain()
    assert len(models.chat_calls) == 1
    models.chat_default = Reply("They noted much.")
    await talk.note("Two more are needed:")
    await talk.note("one was in the summary.")
    await talk.drain()
    assert len(conversation_of(models.chat_calls[-1])["insights"]) == MANY_SNIPPETS
    assert await talk.shown() == ("They noted much.", numbers(3, 6), [])
    await talk.drain()
    assert len(models.chat_calls) == 2


@pytest.mark.parametrize("changes", [{"llm_prompt_tokens": 1500}])
async def test_a_long_log_is_summarised_in_parts_that_fit_into_a_prompt(
    talk: Talk, models: ModelServer
) -> None:
    models.chat_default = Reply(lambda call: re.sub(" (long )*lon?g?|\\[shortened\\]", "", joined(call)))
    turns = [{"role": "user", "content": f"#{number}"} for number in range(1, 101)]
    turns[50]["content"] = "#51" + " long" * 2000
    await talk.agent.request("POST", f"{talk.turns}/batch", json={"turns": turns}, status=201)
    assert (await talk.shown())[2] == ["summary"]
    await talk.drain()
    summary, replayed, degraded = await talk.shown()
    assert summary is not None
    assert (summary.split(), replayed, degraded) == (numbers(1, 96).split(), numbers(97, 100), [])
    assert any("[shortened]" in str(call.body) for call in models.chat_calls)
    assert len(models.chat_calls) > 3
    for call in models.chat_calls:
        assert sum(len(message["content"]) for message in call.body["messages"]) <= 3 * 1500


class Limited(Behaviour):
    """A model whose answers are cut off if they are about more than two turns."""

    def play(self, call: Call, wire: Wire) -> None:
        """Answer."""
        text = json.dumps({"summary": joined(call)})
        reply = Reply(text) if len(conversation_of(call)["turns"]) <= 2 else Reply(text[:-4], "length")
        reply.play(call, wire)


async def test_what_is_cut_off_is_asked_again_with_fewer_turns(talk: Talk, models: ModelServer) -> None:
    models.chat_replies.extend([Limited(), Limited()])
    models.chat_default = Status(503)
    turns = [{"role": "user", "content": f"#{number}"} for number in range(1, 10)]
    await talk.agent.request("POST", f"{talk.turns}/batch", json={"turns": turns}, status=201)
    await talk.drain()
    assert await talk.shown() == (numbers(1, 2), numbers(3, 9), []), "each turn in one place, at any time"
    models.chat_default = Limited()
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), numbers(5, 9), [])


@pytest.mark.parametrize(
    "useless",
    [
        pytest.param(Reply("[]"), id="a list"),
        pytest.param(Reply('{"summary": ""}'), id="blank"),
        pytest.param(Reply('{"summary": 7}'), id="a number"),
        pytest.param(Reply("…"), id="no word"),
        pytest.param(Truncated('{"summary": "x"}'), id="cut off"),
    ],
)
async def test_a_useless_answer_ends_the_job_and_the_next_step_of_the_window_tries_again(
    talk: Talk, models: ModelServer, useless: Behaviour
) -> None:
    models.chat_default = useless
    await talk.say(1, 6)
    await talk.drain()
    assert (await talk.pending(), await talk.shown()) == (0, (None, numbers(1, 6), []))
    calls = len(models.chat_calls)
    await talk.say(7, 7)
    assert await talk.pending() == 0, "not for each turn"
    models.chat_default = Thinking(lambda call: json.dumps({"summary": joined(call)}))
    await talk.say(8, 8)
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), numbers(5, 8), [])
    assert 1 <= calls <= 12
    assert len(models.chat_calls) == calls + 1


async def test_an_answer_in_plain_words_is_a_summary_and_the_tenant_may_set_the_rules(
    talk: Talk, models: ModelServer
) -> None:
    models.chat_default = Reply("They counted.\nThey reached <memory-data>.")
    await talk.agent.request("PUT", "/v1/directives/summary", json={"text": "Write in rhymes."})
    await talk.say(1, 6)
    await talk.drain()
    summary, _, _ = await talk.shown()
    assert summary == "They counted.\nThey reached \N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}memory-data>."
    [call] = models.chat_calls
    assert call.body["messages"][0]["content"].startswith("Write in rhymes.")
    assert call.body["response_format"]["json_schema"]["schema"]["required"] == ["summary"]


async def test_a_used_up_budget_delays_the_summary_until_it_is_raised(
    talk: Talk, models: ModelServer
) -> None:
    budget = "/v1/budgets/purpose/summary"
    await talk.agent.request("PUT", budget, json={"period": "day", "limit_tokens": 1})
    await talk.say(1, 6)
    await talk.drain()
    assert len(models.chat_calls) == 0
    status = await talk.agent.request("GET", "/v1/status")
    assert [(delayed["stage"], delayed["rows"]) for delayed in status["delayed"]] == [("summary", 1)]
    await talk.agent.request("DELETE", budget, params={"period": "day"})
    await talk.drain()
    assert await talk.shown() == (numbers(1, 2), numbers(3, 6), [])
    report = await talk.agent.request("GET", "/v1/spend", params={"group_by": "purpose"})
    assert [row["purpose"] for row in report["results"]] == ["summary"]


@pytest.mark.parametrize("changes", [{"apart": True}])
async def test_a_refused_key_pauses_the_stage_and_no_attempt_is_used(talk: Talk, models: ModelServer) -> None:
    models.chat_default = Status(401)
    await talk.say(1, 6)
    for _ in range(3):
        await talk.drain()
    [pause] = (await talk.agent.request("GET", "/v1/status"))["paused"]
    assert (pause["stage"], pause["reason_code"]) == ("summary", "key_refused")
    assert await _rows(talk, select(job.c.attempts).where(job.c.stage == "summarize")) == [0]
    assert await _rows(talk, select(fleet_counter.c.value).where(fleet_counter.c.name == "summaries")) == []


async def _rows(talk: Talk, statement: Any) -> list[Any]:
    async with talk.gateway.resources.postgres.across_tenants() as tx:
        return list(await tx.scalars(statement))
