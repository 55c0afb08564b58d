"""MO1: a note whose rewriting is cut off is asked again in halves, and replaced as a whole or not at all."""

import json
from typing import Any

import pytest

from shared.foundation import errors
from shared.infra.transaction import Transaction
from shared.memory.longterm import queries as memory_queries
from tests.conftest import Gateway
from tests.draining import drain
from tests.integration.enrichment.conftest import contents, enrich, live, load, save
from tests.integration.enrichment.limited_model import FACTS, NOTE, Limited, note_of
from tests.standins.behaviours import Status, Truncated
from tests.standins.models import ModelServer


@pytest.mark.parametrize("ending", ["length", "unclosed", "no reason", "tokens"])
async def test_a_note_of_260_facts_becomes_260_memories(
    enricher: Gateway, models: ModelServer, ending: str
) -> None:
    models.chat_default = Limited(109, ending)
    raw = await enrich(enricher, NOTE)
    assert (raw["state"], raw["content"]) == ("archived", NOTE)
    assert sorted(await contents(enricher, raw["superseded_by"])) == sorted(FACTS)
    asked_notes = [note_of(call) for call in models.chat_calls]
    assert len(asked_notes) == 7, "the whole, two halves, four quarters"
    whole_answers = [note for note in asked_notes if note.count(". ") < 109]
    assert "".join(whole_answers) == NOTE


async def test_five_halvings_are_tried(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = Limited(11, "length")
    raw = await enrich(enricher, NOTE)
    assert raw["state"] == "archived"
    assert len(models.chat_calls) == 63


async def test_what_is_still_cut_off_after_five_halvings_stays_as_it_was_written(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(6, "length")
    raw = await enrich(enricher, NOTE)
    assert (raw["state"], raw["failure_reason"], raw["content"]) == ("failed", "answer cut off", NOTE)
    assert (raw["archived_at"], raw["superseded_by"]) == (None, [])
    assert await live(enricher) == [NOTE]
    assert len(models.chat_calls) == 6, "one question for each size, since the first cut decides"


async def test_one_sentence_is_not_halved(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = Truncated(json.dumps([{"content": "Ada likes trains"}]))
    raw = await enrich(enricher, "Ada likes trains, and she likes ships")
    assert (raw["state"], raw["failure_reason"]) == ("failed", "answer cut off")
    assert len(models.chat_calls) == 1


async def test_nothing_is_recorded_if_the_model_goes_away_between_the_parts(
    enricher: Gateway, models: ModelServer
) -> None:
    quarter_answer = Limited(109, "length")
    models.chat_replies.extend([Truncated("[" * 9), Truncated("[" * 9), quarter_answer])
    models.chat_default = Status(503, retry_after=3600)
    raw = await enrich(enricher, NOTE)
    assert (raw["state"], raw["superseded_by"]) == ("pending", [])
    assert await live(enricher) == [NOTE]


async def test_the_parts_are_recorded_together_or_not_at_all(
    enricher: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    update_columns = memory_queries.update_columns

    async def fail(tx: Transaction, memory_id: str, columns: dict[str, Any]) -> None:
        if "superseded_by" in columns:
            raise errors.LociError("killed here")
        await update_columns(tx, memory_id, columns)

    monkeypatch.setattr(memory_queries, "update_columns", fail)
    models.chat_default = Limited(109, "length")
    memory_id = await save(enricher, NOTE)
    with pytest.raises(errors.LociError):
        await drain(enricher.resources)
    assert (await load(enricher, memory_id))["state"] == "pending"
    assert await live(enricher) == [NOTE]


async def test_a_note_that_changes_between_the_parts_is_not_replaced(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Limited(109, "length")
    memory_id = await save(enricher, NOTE)
    rewrite_count = 0
    complete = enricher.resources.language_model.complete  # type: ignore[union-attr]

    async def change_meanwhile(*question: Any) -> Any:
        nonlocal rewrite_count
        rewrite_count += 1
        if rewrite_count == 3:
            await enricher.client.patch(f"/v1/memories/{memory_id}", json={"content": "Something else."})
        return await complete(*question)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(enricher.resources.language_model, "complete", change_meanwhile)
        await drain(enricher.resources)
    assert await live(enricher) == ["Something else."]
