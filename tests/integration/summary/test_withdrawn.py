"""CV4, FG1: a summary goes with what it was made of, also while a model is making it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import func, select, update

from shared.foundation.stages import SUMMARIZE
from shared.jobs import claim
from shared.jobs.table import fleet_counter, job
from tests import state
from tests.integration.forgetting.conftest import records_with
from tests.integration.summary.conftest import Talk, numbers
from tests.integration.summary.interruptions import Change, before_the_answer
from tests.standins.models import ModelServer
from tests.state import StateInspector
from workers.summary import summarize

SECRET = "marmalade"


@pytest.fixture
async def inspector(talk: Talk) -> AsyncIterator[StateInspector]:
    """Yield an inspector that reads everything the databases contain."""
    async with state.watching(talk.gateway.resources.settings) as inspector:
        yield inspector


async def _edit(talk: Talk) -> None:
    await talk.agent.request("PATCH", f"{talk.turns}/1", json={"content": "#0"})


async def _delete(talk: Talk) -> None:
    await talk.agent.request("DELETE", f"{talk.turns}/1")


async def _clear(talk: Talk) -> None:
    await talk.agent.request("DELETE", talk.turns)


async def _delete_session(talk: Talk) -> None:
    response = await talk.gateway.client.delete(f"/v1/sessions/{talk.session}")
    assert response.is_success, response.text


async def _erase_user(talk: Talk) -> None:
    await talk.agent.request("DELETE", "/v1/users/ada")


async def _say_secret(talk: Talk) -> None:
    await talk.agent.append_turn(talk.session, f"#1 {SECRET}")
    await talk.say(2, 6)


def each_way(**shown: tuple[str | None, str] | None) -> pytest.MarkDecorator:
    """Return a mark for every way to withdraw a turn, with the summary and the turns shown at last."""
    ways: list[Change] = [_edit, _delete, _clear, _delete_session, _erase_user]
    cases = [pytest.param(way, shown.get(way.__name__), id=way.__name__[1:]) for way in ways]
    return pytest.mark.parametrize(("change", "at_last"), cases)


@each_way(_edit=("#0 #2", numbers(3, 7)), _delete=("#2", numbers(3, 7)), _clear=(None, ""))
async def test_a_summary_goes_with_a_turn_that_it_has_and_is_made_anew(
    talk: Talk, inspector: StateInspector, change: Change, at_last: tuple[str | None, str] | None
) -> None:
    await _say_secret(talk)
    await talk.drain()
    context = await talk.agent.context(talk.session, "#7", idempotency_key="k")
    assert SECRET in str(context["blocks"])
    tables = {name.split()[0] for name in await records_with(inspector, talk.gateway, SECRET)}
    assert len(tables) >= 3, "the turn, the summary, and the stored response"
    await change(talk)
    assert await records_with(inspector, talk.gateway, SECRET) == []
    if at_last is None:
        assert await talk.pending() == 0
        return
    assert await talk.shown() == (None, at_last[1], ["summary"] if at_last[0] else [])
    await talk.drain()
    assert await talk.shown() == (*at_last, [])
    assert await talk.pending() == 0


# With a turn less the window is not full: then nothing is due.
@each_way(_edit=("#0 #2", numbers(3, 6)), _delete=(None, numbers(2, 6)), _clear=(None, ""))
async def test_what_is_withdrawn_while_the_model_thinks_is_in_no_summary(
    talk: Talk,
    inspector: StateInspector,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    at_last: tuple[str | None, str] | None,
) -> None:
    await _say_secret(talk)
    before_the_answer(talk, monkeypatch, change)
    await talk.drain()
    assert await records_with(inspector, talk.gateway, SECRET) == []
    assert await talk.pending() == 0
    if at_last is not None:
        assert await talk.shown() == (*at_last, [])


async def test_turns_that_are_appended_while_the_model_thinks_are_in_the_next_summary(
    talk: Talk, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await talk.say(1, 6)
    before_the_answer(talk, monkeypatch, lambda talk: talk.say(7, 8))
    await talk.drain()
    assert await talk.shown() == (numbers(1, 4), numbers(5, 8), [])
    assert len(models.chat_calls) == 2


async def test_two_workers_with_one_job_store_one_summary(
    talk: Talk, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease of the first one ended before its model answered."""
    resources = talk.gateway.resources

    async def work_as_another(talk: Talk) -> None:
        is_summary = job.c.stage == SUMMARIZE.name
        async with resources.postgres.across_tenants() as tx:
            await tx.execute(update(job).where(is_summary).values(run_at=func.now()))
        async with resources.postgres.across_tenants() as tx:
            [claimed] = await claim.claim_batch(tx, SUMMARIZE, 1, 60, 5)
        await summarize.summarize(resources, claimed, lambda: None)

    stored_before = await _stored_count(talk)
    await talk.say(1, 6)
    before_the_answer(talk, monkeypatch, work_as_another)
    await talk.drain()
    assert await talk.shown() == (numbers(1, 2), numbers(3, 6), [])
    assert (len(models.chat_calls), await _stored_count(talk) - stored_before) == (2, 1)
    assert await talk.pending() == 0


async def _stored_count(talk: Talk) -> float:
    is_stored = (fleet_counter.c.name == "summaries", fleet_counter.c.labels == "stored")
    async with talk.gateway.resources.postgres.across_tenants() as tx:
        return float(await tx.scalar(select(fleet_counter.c.value).where(*is_stored)) or 0)


async def test_many_who_write_while_it_is_summarised_lose_no_turn(talk: Talk) -> None:
    """Every turn is in the summary, or it is replayed, each once and in order."""

    async def summarise() -> None:
        for _ in range(10):
            await talk.drain()

    await asyncio.gather(summarise(), *(talk.say(number, number) for number in range(1, 41)))
    await talk.drain()
    page = await talk.agent.request("GET", talk.turns, params={"after_seq": 0, "limit": 100})
    summary, replayed, degraded = await talk.shown()
    assert f"{summary} {replayed}" == " ".join(turn["content"] for turn in page["results"])
    assert degraded == []
