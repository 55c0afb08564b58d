"""LT16: a final memory over a size is replaced by focused ones that say what it says, or it stays."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.memory.longterm import queries
from shared.verification.claim import Verdict
from tests.conftest import Gateway
from tests.draining import drain
from tests.integration.enrichment.conftest import live, load, save
from tests.integration.enrichment.limited_model import FACTS, NOTE, Limited, note_of
from tests.standins.asked_claims import asked_claims
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call
from workers.sweep import oversized

LABELS = {"category": "workshop/tools", "tags": ["drawers"], "importance": 0.8}


async def compact(gateway: Gateway) -> int:
    """Let the sweep look for oversized memories, process what is due, and return how many it found."""
    found = await oversized.enqueue_oversized(gateway.resources, gateway.tenant)
    await drain(gateway.resources)
    return found


async def test_an_oversized_memory_becomes_focused_ones_with_all_that_it_says_and_its_labels(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(109, "length")
    memory_id = await save(enricher, NOTE, enrich=False, **LABELS)
    assert await compact(enricher) == 1
    original = await load(enricher, memory_id)
    assert (original["state"], original["content"], original["archive_reason"]) == (
        "archived",
        NOTE,
        "compacted",
    )
    successors = [await load(enricher, successor) for successor in original["superseded_by"]]
    assert sorted(memory["content"] for memory in successors) == sorted(FACTS)
    assert all(LABELS.items() <= memory.items() for memory in successors)
    assert {tuple(memory["derived_from"]) for memory in successors} == {(memory_id,)}
    assert await compact(enricher) == 0


async def test_short_keyed_and_raw_memories_are_not_compacted(enricher: Gateway, models: ModelServer) -> None:
    await save(enricher, NOTE[:4000], enrich=False)
    await save(enricher, f"{NOTE} With a key.", key="drawers")
    assert await compact(enricher) == 0
    assert len(models.chat_calls) == 0


async def test_a_memory_that_another_has_replaced_stays_and_keeps_saying_by_which(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(109, "length")
    replaced_id, newer_id = (
        await save(enricher, NOTE, enrich=False),
        await save(enricher, "So.", enrich=False),
    )
    async with enricher.resources.postgres.for_tenant(enricher.tenant) as tx:
        [replaced] = await queries.lock(tx, [replaced_id])
        await queries.close(tx, replaced, datetime(2024, 1, 1, tzinfo=UTC), newer_id)
    assert await compact(enricher) == 0
    assert (await load(enricher, replaced_id))["superseded_by"] == [newer_id]


def same(call: Call) -> str:
    """Return the whole text as one memory."""
    return json.dumps([{"content": note_of(call)}])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("[]", "too long, but the model found nothing in it"),
        (same, "too long, and so is its rewriting"),
        ("Sure!", "the reply holds no JSON"),
    ],
    ids=["nothing", "as long", "useless"],
)
async def test_what_can_not_be_compacted_stays_says_why_and_is_tried_again_only_when_it_was_changed(
    enricher: Gateway, models: ModelServer, answer: Any, reason: str
) -> None:
    models.chat_default = Reply(answer, usage=None)
    memory_id = await save(enricher, NOTE, enrich=False)
    assert await compact(enricher) == 1
    memory = await load(enricher, memory_id)
    assert (memory["state"], memory["content"], memory["archived_at"]) == ("final", NOTE, None)
    assert memory["failure_reason"].startswith(reason)
    assert await compact(enricher) == 0
    changed = f"{NOTE} The cellar is dry."
    await enricher.client.patch(f"/v1/memories/{memory_id}", json={"content": changed})
    assert (await load(enricher, memory_id))["failure_reason"] is None
    assert await compact(enricher) == 1


async def test_a_memory_of_which_one_statement_is_not_in_it_stays_whole_and_says_why(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(109, "length")

    def all_but_one(call: Call) -> str:
        verdicts = [
            {
                "claim": claim.number,
                "quote": claim.statement,
                "verdict": Verdict.NOT_SAID if claim.statement == FACTS[-1] else Verdict.SUPPORTED,
            }
            for claim in asked_claims(call)
        ]
        return json.dumps({"verdicts": verdicts})

    models.judge_default = Reply(all_but_one, usage=None)
    memory_id = await save(enricher, NOTE, enrich=False)
    assert await compact(enricher) == 1
    memory = await load(enricher, memory_id)
    assert (memory["state"], memory["archived_at"], memory["superseded_by"]) == ("final", None, [])
    assert memory["failure_reason"] == "too long, and its rewriting is in doubt"
    assert await live(enricher) == [NOTE]
    assert (await enricher.client.get("/v1/proposals")).json()["results"] == []
    assert await compact(enricher) == 0


async def test_a_memory_that_changes_while_the_model_thinks_is_not_replaced(
    enricher: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.chat_default = Limited(109, "length")
    memory_id = await save(enricher, NOTE, enrich=False)
    model = enricher.resources.language_model
    assert model is not None
    complete = model.complete

    async def change_meanwhile(*question: Any) -> Any:
        await enricher.client.patch(f"/v1/memories/{memory_id}", json={"content": "Something else."})
        return await complete(*question)

    monkeypatch.setattr(model, "complete", change_meanwhile)
    await compact(enricher)
    assert await live(enricher) == ["Something else."]


async def test_a_text_that_was_deleted_before_does_not_come_back_and_the_whole_stays(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(109, "length")
    deleted_id = await save(enricher, FACTS[0], enrich=False)
    await enricher.client.delete(f"/v1/memories/{deleted_id}")
    memory_id = await save(enricher, NOTE, enrich=False)
    await compact(enricher)
    memory = await load(enricher, memory_id)
    assert (memory["state"], memory["failure_reason"]) == (
        "final",
        "too long, but a part of it was deleted before",
    )
    assert await live(enricher) == [NOTE]
