"""EN4: each statement of a rewriting is decided alone; what is not stored costs nothing of its note."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from shared.verification.claim import Verdict
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import drain, running_without_jobs
from tests.integration.enrichment.conftest import enrich, live, load, save
from tests.standins.asked_claims import AskedClaim, reply_text
from tests.standins.behaviours import Hang, Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour

NOTE = "The office in Kiel closes at 18:00, the one in Cologne at 18:30. Bring the Zwiebel42 key."
KIEL, COLOGNE = "The office in Kiel closes at 18:00.", "The office in Cologne closes at 18:30."
INVENTED = "The office in Bremen closes at 19:00."
DOUBTFUL = "People in Kiel rarely work in the evening."
Json = dict[str, Any]


@pytest.fixture
async def unjudged(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model that is not trusted as a judge."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant, has_trusted_judge=False) as served:
        yield served


def rewriting(*texts: str) -> Reply:
    return Reply(json.dumps([{"content": text} for text in texts]))


def judging(*refused: str) -> Reply:
    """Return a judge that finds everything in the evidence but these texts."""

    def verdict_of(claim: AskedClaim) -> Verdict:
        return Verdict.NOT_SAID if claim.statement in refused else Verdict.SUPPORTED

    return Reply(lambda call: reply_text(call, verdict_of))


async def held(gateway: Gateway) -> dict[str, Json]:
    """Return what waits for a decision, by its text."""
    agent = Agent(gateway.client, gateway.tenant)
    listed = await agent.request("GET", "/v1/proposals", params={"state": "held"})
    return {proposal["text"]: proposal for proposal in listed["results"]}


async def approve(gateway: Gateway, proposal: Json, status: int = HTTPStatus.OK) -> Json:
    agent = Agent(gateway.client, gateway.tenant)
    path = f"/v1/proposals/{proposal['id']}"
    return dict(await agent.request("POST", path, json={"action": "approve"}, status=status))


async def find(gateway: Gateway, query: str) -> list[Json]:
    return list((await Agent(gateway.client, gateway.tenant).search(query))["results"])


async def reasons_of(gateway: Gateway, note: Json) -> list[str]:
    """Return each reason that a note and its history give."""
    history = await Agent(gateway.client, gateway.tenant).history(note["id"])
    return [reason for reason in [note["failure_reason"], *(item["reason"] for item in history)] if reason]


async def test_what_the_judge_finds_in_the_note_is_stored_and_the_rest_is_in_its_evidence(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default, models.judge_default = rewriting(KIEL, INVENTED), judging(INVENTED)
    note = await enrich(enricher, NOTE)
    assert (note["state"], note["archived_by"], note["content"]) == ("archived", "enrichment", NOTE)
    assert await live(enricher) == [KIEL]
    stored = await load(enricher, note["superseded_by"][0])
    decided = (stored["decided_by"], stored["verdict"], stored["judge_model"], stored["derived_from"])
    assert decided == ("judge", "supported", "m", [note["id"]])
    assert await held(enricher) == {}
    [found] = await find(enricher, "Zwiebel42")
    assert (found["id"], found["text_of"], found["content"]) == (stored["id"], "evidence", NOTE)


async def test_a_note_of_which_the_judge_finds_nothing_stays_as_it_was_written(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default, models.judge_default = rewriting(KIEL, INVENTED), judging(KIEL, INVENTED)
    note = await enrich(enricher, NOTE)
    assert (note["state"], note["archived_at"], note["superseded_by"]) == ("kept-raw", None, [])
    assert await reasons_of(enricher, note) == ["the judge does not find it in the note"] * 2
    assert (await live(enricher), await held(enricher)) == ([NOTE], {})
    assert len(models.judge_calls) == 1
    assert [found["id"] for found in await find(enricher, "Zwiebel42")] == [note["id"]]


async def test_a_reason_goes_with_the_text_that_it_is_about(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default, models.judge_default = rewriting(INVENTED), judging(INVENTED)
    note = await enrich(enricher, NOTE)
    await enricher.client.patch(f"/v1/memories/{note['id']}", json={"content": "The gate has a password."})
    assert (await load(enricher, note["id"]))["failure_reason"] is None


async def test_without_a_judge_what_is_in_doubt_waits_with_the_note_as_evidence(
    unjudged: Gateway, models: ModelServer
) -> None:
    models.chat_default = rewriting(INVENTED, DOUBTFUL)
    note = await enrich(unjudged, NOTE)
    assert (note["state"], await live(unjudged)) == ("kept-raw", [NOTE])
    assert await reasons_of(unjudged, note) == ["2 statements wait for a decision"] * 2
    waiting = await held(unjudged)
    assert {text: item["kind"] for text, item in waiting.items()} == dict.fromkeys(
        (INVENTED, DOUBTFUL), "rewriting"
    )
    assert {tuple(item["evidence"][0].items()) for item in waiting.values()} == {(("memory_id", note["id"]),)}
    assert "added" in waiting[INVENTED]["signs"]
    assert models.judge_calls == []

    approved = await approve(unjudged, waiting[DOUBTFUL])

    archived, stored = await load(unjudged, note["id"]), await load(unjudged, approved["memory_id"])
    assert (archived["state"], archived["superseded_by"]) == ("archived", [stored["id"]])
    assert (stored["decided_by"], stored["derived_from"]) == ("caller", [note["id"]])
    [found] = await find(unjudged, "Zwiebel42")
    assert (found["id"], found["text_of"]) == (stored["id"], "evidence")
    assert await live(unjudged) == [DOUBTFUL]


async def test_without_a_judge_what_has_no_sign_is_stored_by_them(
    unjudged: Gateway, models: ModelServer
) -> None:
    models.chat_default = rewriting(KIEL, INVENTED)
    note = await enrich(unjudged, NOTE)
    stored = await load(unjudged, note["superseded_by"][0])
    assert (stored["content"], stored["decided_by"], stored["verdict"]) == (KIEL, "signs", None)
    assert list(await held(unjudged)) == [INVENTED]


async def test_what_waits_is_approved_after_others_of_the_same_note_were_stored(
    unjudged: Gateway, models: ModelServer
) -> None:
    models.chat_default = rewriting(KIEL, INVENTED, DOUBTFUL)
    note = await enrich(unjudged, NOTE)
    assert await live(unjudged) == [KIEL]
    waiting = await held(unjudged)
    approved = [await approve(unjudged, waiting[text]) for text in (DOUBTFUL, INVENTED)]
    archived = await load(unjudged, note["id"])
    ids = [*note["superseded_by"], *(item["memory_id"] for item in approved)]
    assert (archived["superseded_by"], archived["archived_by"]) == (ids, "enrichment")
    assert sorted(await live(unjudged)) == sorted([KIEL, DOUBTFUL, INVENTED])


async def test_a_text_that_waits_twice_waits_once(unjudged: Gateway, models: ModelServer) -> None:
    models.chat_default = rewriting(INVENTED)
    note = await enrich(unjudged, NOTE)
    first = await held(unjudged)
    response = await unjudged.client.post(f"/v1/memories/{note['id']}/enrich")
    assert response.is_success, response.text
    await drain(unjudged.resources)
    assert len(models.chat_calls) == 2
    assert [item["id"] for item in (await held(unjudged)).values()] == [first[INVENTED]["id"]]
    assert (await approve(unjudged, first[INVENTED]))["state"] == "approved"


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_nothing_is_stored_of_a_note_that_was_changed_while_it_waited(
    unjudged: Gateway, models: ModelServer, change: str
) -> None:
    """What waits repeats the note, and goes with its text."""
    models.chat_default = rewriting(INVENTED)
    note = await enrich(unjudged, NOTE)
    waiting = (await held(unjudged))[INVENTED]
    models.chat_default = Reply("[]")
    path = f"/v1/memories/{note['id']}"
    if change == "edit":
        await unjudged.client.patch(path, json={"content": "The office is closed."})
    else:
        await unjudged.client.delete(path)
    await approve(unjudged, waiting, HTTPStatus.NOT_FOUND)
    assert await held(unjudged) == {}
    assert await live(unjudged) == (["The office is closed."] if change == "edit" else [])


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_nothing_comes_back_of_a_note_that_is_changed_while_the_judge_thinks(
    enricher: Gateway, models: ModelServer, change: str
) -> None:
    hanging = Hang(then=judging())
    models.chat_default, models.judge_default = rewriting(KIEL), hanging
    memory_id = await save(enricher, NOTE)
    draining = asyncio.create_task(drain(enricher.resources))
    await asyncio.to_thread(models.wait_for_calls, 2)
    assert len(models.judge_calls) == 1
    path = f"/v1/memories/{memory_id}"
    if change == "edit":
        response = await enricher.client.patch(path, json={"content": "It is closed."})
    else:
        response = await enricher.client.delete(path)
    assert response.is_success, response.text
    models.chat_default = Reply("[]")
    hanging.release.set()
    await draining
    assert await live(enricher) == (["It is closed."] if change == "edit" else [])
    assert await held(enricher) == {}


@pytest.mark.parametrize("behaviour", [Status(503), Reply("I support them all.")])
async def test_a_judge_that_gives_no_verdict_leaves_it_to_the_signs(
    enricher: Gateway, models: ModelServer, behaviour: Behaviour
) -> None:
    models.chat_default, models.judge_default = rewriting(KIEL, INVENTED), behaviour
    note = await enrich(enricher, NOTE)
    assert len(models.judge_calls) >= 1
    stored = await load(enricher, note["superseded_by"][0])
    assert (stored["content"], stored["decided_by"], stored["judge_model"]) == (KIEL, "signs", None)
    assert list(await held(enricher)) == [INVENTED]


async def test_nothing_durable_in_a_note_is_no_fault_and_asks_no_judge(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("[]")
    note = await enrich(enricher, NOTE)
    assert (note["state"], note["failure_reason"]) == ("kept-raw", None)
    assert (len(models.chat_calls), models.judge_calls) == (1, [])


async def test_without_a_judge_a_note_is_retold_with_a_word_of_its_own(
    unjudged: Gateway, models: ModelServer
) -> None:
    """A retelling may differ from its note more than a statement may differ from what was said."""
    retold = "Ada keeps bees in the old garden beside the white house."
    models.chat_default = rewriting(retold)
    note = await enrich(unjudged, "Ada keeps bees in the old garden behind the white house.")
    assert (note["state"], await live(unjudged), await held(unjudged)) == ("archived", [retold], {})
