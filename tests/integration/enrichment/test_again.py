"""LT19: what was kept as it was written is enriched once more when a caller asks."""

import json
from typing import Any

from tests.conftest import Gateway
from tests.draining import drain
from tests.integration.enrichment.conftest import enrich, live, load, save
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

NOTE = "Ada has a boat."
GOOD = Reply(json.dumps([{"content": "Ada owns a boat."}]))


async def act(
    gateway: Gateway, memory_id: str, action: str, status: int = 200, **body: Any
) -> dict[str, Any]:
    response = await gateway.client.post(f"/v1/memories/{memory_id}/{action}", json=body)
    assert response.status_code == status, response.text
    return dict(response.json())


async def test_a_failed_note_is_enriched_when_a_caller_asks_again(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = Reply("Sure!")
    note = await enrich(enricher, NOTE)
    assert note["state"] == "failed"
    models.chat_default = GOOD
    asked = await act(enricher, note["id"], "enrich", 202, reason="another model")
    assert (asked["state"], asked["failure_reason"]) == ("pending", None)
    assert (await act(enricher, note["id"], "enrich", 202))["version"] == asked["version"]
    await drain(enricher.resources)
    assert (await load(enricher, note["id"]))["state"] == "archived"
    assert await live(enricher) == ["Ada owns a boat."]
    history = (await enricher.client.get(f"/v1/memories/{note['id']}/history")).json()["results"]
    assert ("enrichment-requested", "another model") in [(item["action"], item["reason"]) for item in history]


async def test_a_note_that_is_archived_while_it_waits_is_neither_enriched_nor_marked(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = GOOD
    note = await save(enricher, NOTE)
    await act(enricher, note, "archive")
    await drain(enricher.resources)
    assert (await load(enricher, note))["state"] == "archived"
    assert (await live(enricher), models.chat_calls) == ([], [])
    assert (await act(enricher, note, "restore"))["state"] == "pending"
    await drain(enricher.resources)
    assert await live(enricher) == ["Ada owns a boat."]


async def test_an_enriched_note_that_is_restored_stays_as_it_was_written(
    enricher: Gateway, models: ModelServer
) -> None:
    models.chat_default = GOOD
    note = await enrich(enricher, NOTE)
    assert (await act(enricher, note["id"], "restore"))["state"] == "kept-raw"
    await drain(enricher.resources)
    assert sorted(await live(enricher)) == [NOTE, "Ada owns a boat."]


async def test_what_has_a_key_is_not_enriched_nor_reinforced(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = GOOD
    keyed = await save(enricher, "Ada owns a boat.", key="boat", enrich=True)
    assert (await load(enricher, keyed))["state"] == "final"
    note = await enrich(enricher, NOTE)
    assert keyed not in note["superseded_by"]
    assert (
        (await load(enricher, keyed))["version"],
        (await load(enricher, keyed))["reinforcement_count"],
    ) == (1, 1)


async def test_what_is_made_of_a_note_has_its_times(enricher: Gateway, models: ModelServer) -> None:
    models.chat_default = GOOD
    times = {"valid_from": "2024-01-01T00:00:00Z", "expires_at": "2999-01-01T00:00:00Z", "valid_until": None}
    note = await enrich(enricher, NOTE, **times)
    (successor,) = note["superseded_by"]
    made = await load(enricher, successor)
    assert {name: made[name] for name in times} == times
