"""LT20: memories that match a filter are deleted with every copy: of exactly one scope, with a receipt."""

import asyncio
from http import HTTPStatus
from typing import Any

import pytest
from sqlalchemy import func

from shared.foundation.scope import Scope
from shared.lifecycle import erasure, register
from shared.memory.longterm import queries, tombstones
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import process_all
from tests.integration.forgetting.conftest import records_with
from tests.integration.longterm.changed_rows import change_columns
from tests.locks import wait_until_blocked
from tests.state import StateInspector

SECRET = "marmalade"

_DRAFT = {"field": "tags", "op": "eq", "value": "draft"}
_REFUSED = HTTPStatus.UNPROCESSABLE_ENTITY


async def _delete(agent: Agent, condition: Any = _DRAFT, *, status: int = HTTPStatus.OK, **more: Any) -> Any:
    body = {"filter": condition, **more}
    return await agent.request("POST", "/v1/memories/delete", json=body, status=status)


async def _save_batch(agent: Agent, contents: list[str], **fields: Any) -> None:
    body = {"memories": [{"content": content, **fields} for content in contents]}
    await agent.request("POST", "/v1/memories/batch", json=body, status=HTTPStatus.CREATED)


async def _tombstones(gateway: Gateway, *contents: str) -> set[str]:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        return await tombstones.find_deleted(tx, Scope(gateway.tenant), contents)


async def test_what_matches_in_exactly_one_scope_is_deleted_with_every_copy(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await agent.save(f"Ada's jar holds {SECRET}.", user_id="ada", tags=["draft"])
    await agent.save("Ada's jar is red.", user_id="ada")
    for scope in ({"user_id": "bob"}, {}, {"agent_id": "other", "user_id": "ada"}):
        await agent.save("Another jar.", tags=["draft"], **scope)
    await agent.context(await agent.session(user_id="ada"), f"Which jar holds {SECRET}?", record_turn=False)
    counted = await _delete(agent, user_id="ada", dry_run=True)
    assert (counted["state"], counted["id"], counted["erased"]["memories"]) == ("dry_run", None, 1)
    assert await records_with(inspector, gateway, SECRET) != []
    receipt = await _delete(agent, user_id="ada")
    assert (receipt["erased"]["memories"], receipt["erased"]["points"], receipt["dry_run"]) == (1, 1, False)
    await process_all(gateway.resources)
    assert await records_with(inspector, gateway, SECRET) == []
    assert (await agent.request("GET", f"/v1/erasures/{receipt['id']}"))["state"] == "done"
    for scope, left in (({"user_id": "ada"}, 2), ({"user_id": "bob"}, 1), ({"agent_id": "other"}, 0)):
        assert len(await agent.search_contents("jar", **scope)) == left, scope
    assert len(await agent.search_contents("jar", agent_id="other", user_id="ada")) == 1


async def test_a_repeated_deletion_answers_the_last_receipt_until_something_new_matches(agent: Agent) -> None:
    await agent.save("one", tags=["draft"])
    first = await _delete(agent)
    assert (await _delete(agent))["id"] == first["id"]
    await agent.save("one", tags=["draft"])
    second = await _delete(agent)
    assert second["id"] != first["id"]
    assert second["erased"]["memories"] == 1


@pytest.mark.parametrize("few_ids", [100, 0])
async def test_archived_sources_go_too_and_a_text_said_elsewhere_gets_no_tombstone(
    gateway: Gateway, agent: Agent, monkeypatch: pytest.MonkeyPatch, few_ids: int
) -> None:
    """Closed memories match; archived ones match only if the filter names their state.

    Many ids are looked up in arrays in another way than few.
    """
    monkeypatch.setattr(register, "_FEW_IDS", few_ids)
    raw, split, copied, archived = [
        await agent.save(f"jar {name}", tags=["draft"] if name != "raw" else [])
        for name in ("raw", "split", "copied", "archived")
    ]
    kept = await agent.save("another kept")
    now = func.now()
    changes: dict[str, Any] = {
        raw["id"]: {"state": "archived", "is_archived": True},
        split["id"]: {"derived_from": [raw["id"]], "valid_until": now},
        copied["id"]: {"valid_until": now},
        archived["id"]: {"state": "archived", "is_archived": True},
        kept["id"]: {"derived_from": [raw["id"], archived["id"]]},
    }
    await change_columns(gateway, changes)
    await agent.save("jar copied")
    receipt = await _delete(agent)
    assert (receipt["erased"]["memories"], receipt["erased"]["archived"]) == (3, 1)
    assert await _tombstones(gateway, "jar raw", "jar split", "jar copied", "jar archived") == {
        "jar raw",
        "jar split",
    }
    assert await agent.search_contents("jar") == ["jar copied"]
    await agent.memory(archived["id"])
    assert (await agent.memory(kept["id"]))["derived_from"] == [archived["id"]]
    by_name = {"and": [_DRAFT, {"field": "state", "op": "eq", "value": "archived"}]}
    # What was made from nothing else goes with it.
    assert (await _delete(agent, by_name))["erased"]["memories"] == 2


@pytest.mark.parametrize("named_by", ["id", "filter"])
async def test_a_memory_that_is_restored_while_its_deletion_waits_leaves_what_was_made_from_it(
    agent: Agent, gateway: Gateway, named_by: str
) -> None:
    source, derived = await agent.save("jar one"), await agent.save("jar two")
    archived: dict[str, Any] = {"state": "archived", "is_archived": True}
    await change_columns(gateway, {source["id"]: archived, derived["id"]: {"derived_from": [source["id"]]}})

    async def delete_source() -> None:
        if named_by == "id":
            await agent.request("DELETE", f"/v1/memories/{source['id']}")
        else:
            by_id = {"field": "id", "op": "eq", "value": source["id"]}
            is_any = {"field": "state", "op": "in", "value": ["archived", "final"]}
            await _delete(agent, {"and": [by_id, is_any]})

    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        live = {"state": "final", "archived_at": None}
        await queries.update_columns(tx, source["id"], live)
        deletion = asyncio.ensure_future(delete_source())
        await wait_until_blocked(tx, deletion)
    await deletion
    await agent.request("GET", f"/v1/memories/{source['id']}", status=HTTPStatus.NOT_FOUND)
    await agent.memory(derived["id"])


@pytest.mark.parametrize("bad", [{}, None, [], {"and": []}, {"field": "tags", "op": "eq"}])
async def test_without_a_condition_nothing_is_deleted(agent: Agent, bad: Any) -> None:
    await agent.save("one")
    refused = await _delete(agent, bad, status=_REFUSED)
    assert refused["errors"][0]["field"].startswith("filter")
    assert await agent.search_contents("one") == ["one"]


async def test_a_bound_key_reads_the_receipts_of_its_own_deletions_without_being_admin(
    gateway: Gateway, agent: Agent
) -> None:
    for user in ("ada", "bob"):
        await agent.save("one", tags=["draft"], user_id=user)
    rights = ["read", "write"]
    async with await gateway.new_client(user_id="ada", rights=rights) as client:
        ada = Agent(client, gateway.tenant)
        own = await _delete(ada)
        assert (own["user_id"], own["erased"]["memories"]) == ("ada", 1)
        await ada.request("GET", f"/v1/erasures/{own['id']}")
        foreign = await _delete(agent, user_id="bob")
        await ada.request("GET", f"/v1/erasures/{foreign['id']}", status=HTTPStatus.NOT_FOUND)
    async with await gateway.new_client(rights=rights) as client:
        unbound = Agent(client, gateway.tenant)
        await unbound.request("GET", f"/v1/erasures/{own['id']}")
        erased = await agent.request("DELETE", "/v1/users/ada")
        await unbound.request("GET", f"/v1/erasures/{erased['id']}", status=HTTPStatus.FORBIDDEN)


async def test_more_than_a_request_may_delete_is_deleted_by_a_job_and_nothing_saved_later(
    agent: Agent, gateway: Gateway, inspector: StateInspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "MAX_ROWS_PER_REQUEST", 5)
    monkeypatch.setattr(erasure, "_BATCH", 4)
    await _save_batch(agent, [f"Jar {number} holds {SECRET}." for number in range(10)], tags=["draft"])
    receipt = await _delete(agent, status=HTTPStatus.ACCEPTED)
    assert receipt["stores"] == {"postgres": "pending", "redis": "pending", "qdrant": "pending"}
    assert (await _delete(agent, status=HTTPStatus.ACCEPTED))["id"] == receipt["id"]
    await agent.save("A later jar.", tags=["draft"])
    await process_all(gateway.resources)
    done = await agent.request("GET", f"/v1/erasures/{receipt['id']}")
    assert (done["state"], done["erased"]["memories"]) == ("done", 10)
    assert await records_with(inspector, gateway, SECRET) == []
    assert await agent.search_contents("jar") == ["A later jar."]


async def test_beside_saves_of_the_same_texts_every_save_is_kept_whole_or_deleted_whole(
    agent: Agent, gateway: Gateway
) -> None:
    """The saves reinforce, in another order, what the deletion locks."""
    contents = [f"jar {number}" for number in range(30)]

    async def save() -> None:
        for _ in range(5):
            await _save_batch(agent, contents, tags=["draft"])

    async def delete() -> None:
        for _ in range(10):
            await _delete(agent)

    await asyncio.gather(save(), save(), delete())
    await _save_batch(agent, contents, tags=["draft"])
    assert len(await agent.search_contents("jar", limit=100)) == len(contents)
    await _delete(agent)
    await process_all(gateway.resources)
    assert await agent.search_contents("jar") == []
    listed = await agent.request("GET", "/v1/memories", params={"validity": "any"})
    assert listed["results"] == []
