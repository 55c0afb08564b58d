"""What a rewriting left out is found through the note, which stays in the index as evidence."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import update

from shared.foundation import config
from shared.infra.qdrant import Qdrant
from shared.memory.longterm.table import memory as memory_table
from shared.search.index import points
from shared.search.index.points import IndexDocument
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import drain, running_without_jobs
from tests.integration.enrichment.conftest import enrich, load
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer

NOTE = "The ferry rattles at full speed, so bring earplugs."
REWRITTEN = ["The ferry rattles at full speed."]
LEFT_OUT = "earplugs"
Json = dict[str, Any]


@pytest.fixture(params=["embedder", "keywords alone"])
async def served(
    request: pytest.FixtureRequest,
    make_settings: Callable[..., config.Settings],
    models: ModelServer,
    tenant: str,
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a language model, with and without an embedder."""
    embedder = {"embedding_base_url": models.url, "embedding_model": "stand-in"}
    settings = make_settings(
        llm_base_url=models.url,
        llm_model="m",
        job_backoff=0.01,
        **(embedder if request.param == "embedder" else {}),
    )
    async with running_without_jobs(settings, tenant) as gateway:
        yield gateway


def answer(texts: list[str]) -> Reply:
    return Reply(json.dumps([{"content": text} for text in texts]))


async def rewrite(gateway: Gateway, models: ModelServer, texts: list[str], **more: Any) -> Json:
    """Save the note, let the model rewrite it, and return it with its successors."""
    models.chat_default = answer(texts)
    note = await enrich(gateway, NOTE, **more)
    assert (note["state"], len(note["superseded_by"])) == ("archived", len(texts)), note
    return note


async def search(gateway: Gateway, query: str = LEFT_OUT, **more: Any) -> list[Json]:
    """Return what a search finds by a word of the query: the embedder's stand-in ranks everything."""
    found = (await Agent(gateway.client, gateway.tenant).search(query, **more))["results"]
    return [result for result in found if query in result["content"]]


async def change(gateway: Gateway, memory_id: str, **values: Any) -> None:
    """Change a row behind the back of the index."""
    where = (memory_table.c.tenant == gateway.tenant, memory_table.c.id == memory_id)
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        await tx.execute(update(memory_table).where(*where).values(values))


async def test_what_a_rewriting_left_out_is_found_for_its_successor(
    served: Gateway, models: ModelServer
) -> None:
    note = await rewrite(served, models, REWRITTEN)
    found = await search(served)
    assert [(hit["id"], hit["content"], hit["text_of"]) for hit in found] == [
        (note["superseded_by"][0], NOTE, "evidence")
    ]
    assert found[0]["state"] != "archived"
    assert (await load(served, found[0]["id"]))["content"] == REWRITTEN[0]


async def test_a_word_of_both_shows_the_record_once_with_its_own_text(
    served: Gateway, models: ModelServer
) -> None:
    note = await rewrite(served, models, REWRITTEN)
    agent = Agent(served.client, served.tenant)
    results = (await agent.search("rattles at full speed"))["results"]
    shown = [(hit["id"], hit["content"], hit["text_of"]) for hit in results]
    assert shown == [(note["superseded_by"][0], REWRITTEN[0], "record")]


async def test_of_several_successors_the_one_that_matches_best_is_the_result(
    served: Gateway, models: ModelServer
) -> None:
    texts = ["The ferry rattles.", "Full speed is loud."]
    note = await rewrite(served, models, texts)
    successors = [await load(served, id_) for id_ in note["superseded_by"]]
    speed_id = next(item["id"] for item in successors if item["content"] == texts[1])
    results = (await Agent(served.client, served.tenant).search("earplugs for full speed"))["results"]
    assert (results[0]["id"], results[0]["text_of"]) == (speed_id, "evidence")
    assert len(results) == len({hit["id"] for hit in results})


async def test_filters_are_those_of_the_successor_and_a_listing_of_the_archived_has_the_note(
    served: Gateway, models: ModelServer
) -> None:
    note = await rewrite(served, models, REWRITTEN, category="travel")
    assert await search(served, category="travel") != []
    await change(served, note["superseded_by"][0], category="boats")
    assert await search(served, category="travel") == []
    assert [hit["text_of"] for hit in await search(served, category="boats")] == ["evidence"]
    archived = await search(served, state="archived")
    assert [(hit["id"], hit["text_of"]) for hit in archived] == [(note["id"], "record")]


async def test_evidence_of_another_user_or_agent_is_not_found(served: Gateway, models: ModelServer) -> None:
    await rewrite(served, models, REWRITTEN, agent_id="helm", user_id="ann")
    assert len(await search(served, agent_id="helm", user_id="ann")) == 1
    assert await search(served, agent_id="helm", user_id="ben") == []
    assert await search(served, agent_id="deck", user_id="ann") == []


async def test_evidence_never_leads_to_a_memory_of_another_owner(
    served: Gateway, models: ModelServer
) -> None:
    note = await rewrite(served, models, REWRITTEN, user_id="ann")
    agent = Agent(served.client, served.tenant)
    common = await agent.save("The harbour is deep.", enrich=False)
    await change(served, note["id"], superseded_by=[common["id"]])
    assert await search(served, user_id="ann") == []


@pytest.mark.parametrize(
    "values",
    [
        {"archived_by": "caller"},
        {"archived_by": "dream", "superseded_by": []},
        {"valid_until": memory_table.c.last_seen_at},
        {"version": 99},
    ],
    ids=["archived by a caller", "pruned", "closed", "another version"],
)
async def test_what_is_no_evidence_is_not_found(served: Gateway, models: ModelServer, values: Json) -> None:
    note = await rewrite(served, models, REWRITTEN)
    assert len(await search(served)) == 1
    await change(served, note["id"], **values)
    assert await search(served) == []


async def test_a_merge_of_what_was_rewritten_is_found_through_the_first_note(
    served: Gateway, models: ModelServer
) -> None:
    note = await rewrite(served, models, REWRITTEN)
    merged = await Agent(served.client, served.tenant).save("A loud ferry.", enrich=False)
    (rewritten_id,) = note["superseded_by"]
    merged_into = {"state": "archived", "archived_at": memory_table.c.last_seen_at}
    await change(
        served, rewritten_id, **merged_into, archived_by="dream", superseded_by=[merged["id"], note["id"]]
    )
    assert [hit["id"] for hit in await search(served)] == [merged["id"]]
    await change(served, rewritten_id, archived_by="caller")
    assert await search(served) == []


@pytest.mark.parametrize("deleted", ["the note", "its successor"])
async def test_after_a_deletion_nothing_of_it_is_found(
    served: Gateway, models: ModelServer, deleted: str
) -> None:
    note = await rewrite(served, models, REWRITTEN)
    (successor_id,) = note["superseded_by"]
    gone = note["id"] if deleted == "the note" else successor_id
    await served.client.delete(f"/v1/memories/{gone}")
    assert await search(served) == []
    for memory_id in (note["id"], successor_id):
        assert (await served.client.get(f"/v1/memories/{memory_id}")).status_code == 404


async def test_a_restored_note_is_a_result_of_its_own(served: Gateway, models: ModelServer) -> None:
    note = await rewrite(served, models, REWRITTEN)
    response = await served.client.post(f"/v1/memories/{note['id']}/restore", json={})
    assert response.status_code == 200, response.text
    found = await search(served)
    assert [(hit["id"], hit["text_of"]) for hit in found] == [(note["id"], "record")]


async def test_a_point_from_before_evidence_was_marked_is_found(
    served: Gateway, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    upsert_points = points.upsert_points

    async def upsert_without_mark(
        qdrant: Qdrant, collection: str, documents: Sequence[IndexDocument], *, bulk: bool = False
    ) -> None:
        for document in documents:
            document.filters.pop("evidence", None)
        await upsert_points(qdrant, collection, documents, bulk=bulk)

    monkeypatch.setattr(points, "upsert_points", upsert_without_mark)
    await rewrite(served, models, REWRITTEN)
    assert len(await search(served)) == 1


async def test_many_notes_of_evidence_take_no_place_of_another_result(
    served: Gateway, models: ModelServer
) -> None:
    agent = Agent(served.client, served.tenant)
    note = await rewrite(served, models, REWRITTEN)
    other = await agent.save("Somebody left earplugs in the cabin.", enrich=False)
    for number in range(5):
        copy = await agent.save(f"Again earplugs {number}.", enrich=False)
        archived = {"state": "archived", "archived_at": memory_table.c.last_seen_at}
        await change(served, copy["id"], **archived, archived_by="dream", superseded_by=note["superseded_by"])
    found = await search(served, limit=2)
    assert sorted(hit["id"] for hit in found) == sorted([other["id"], *note["superseded_by"]])
    await drain(served.resources)
