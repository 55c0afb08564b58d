"""DR1 to DR4, DR7, DR8: dream runs end to end: plan, apply, diff, undo, checks and locks."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import pytest

from tests.conftest import Gateway
from tests.integration.dreams.conftest import live, merge_reply, run_dream, save_memories
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call


def _pass(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(pass_ for pass_ in run["passes"] if pass_["name"] == name)


async def test_a_run_merges_memories_that_say_the_same_and_archives_ephemeral_ones(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)

    run = await run_dream(model_gateway, passes=["consolidate"])

    assert run["state"] == "done"
    consolidation = _pass(run, "consolidate")
    assert consolidation["state"] == "done", consolidation
    assert consolidation["applied"] == {"created": 1, "archived": 3}
    assert consolidation["model"] == "m"
    assert consolidation["directive"].startswith("dream@")
    assert consolidation["input_tokens"] > 0
    contents = await live(model_gateway)
    assert set(ids[3:]) < set(contents)
    assert "Ada lives in Lyon; her home is at 12 Rue Neuve." in contents.values()
    merged = (await model_gateway.client.get(f"/v1/memories/{ids[0]}")).json()
    assert merged["state"] == "archived"
    successor = (await model_gateway.client.get(f"/v1/memories/{merged['superseded_by'][0]}")).json()
    assert sorted(successor["derived_from"]) == sorted(ids[:2])
    assert successor["reinforcement_count"] == 2
    assert set(successor["tags"]) == {"home", "address"}


async def test_the_diff_names_every_change_and_undo_reverts_all_of_them(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    before = await live(model_gateway)
    models.chat_default = merge_reply(ids)
    run = await run_dream(model_gateway, passes=["consolidate"])

    diff = (await model_gateway.client.get(f"/v1/dreams/{run['id']}/diff")).json()["results"]
    undone = (await model_gateway.client.post(f"/v1/dreams/{run['id']}/undo")).json()

    assert sorted(change["action"] for change in diff) == ["archived", "archived", "archived", "created"]
    assert sorted(undone["restored"]) == sorted(ids[:3])
    assert undone["kept"] == []
    assert await live(model_gateway) == before
    response = await model_gateway.client.post("/v1/memories/search", json={"query": "tram"})
    assert [memory["id"] for memory in response.json()["results"]][:1] == [ids[2]]
    second = await model_gateway.client.post(f"/v1/dreams/{run['id']}/undo")
    assert second.status_code == 409


async def test_undo_keeps_what_was_changed_since_and_reports_it(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    run = await run_dream(model_gateway, passes=["consolidate"])
    successor = (await model_gateway.client.get(f"/v1/memories/{ids[0]}")).json()["superseded_by"][0]
    await model_gateway.client.patch(f"/v1/memories/{successor}", json={"content": "Ada moved to Nice."})

    undone = (await model_gateway.client.post(f"/v1/dreams/{run['id']}/undo")).json()

    assert undone["restored"] == [ids[2]]
    assert {kept["entry_id"] for kept in undone["kept"]} == {successor, *ids[:2]}
    assert "Ada moved to Nice." in (await live(model_gateway)).values()


async def test_a_dry_run_decides_and_changes_nothing(model_gateway: Gateway, models: ModelServer) -> None:
    ids = await save_memories(model_gateway)
    before = await live(model_gateway)
    models.chat_default = merge_reply(ids)

    run = await run_dream(model_gateway, passes=["consolidate"], dry_run=True)

    assert await live(model_gateway) == before
    assert _pass(run, "consolidate")["proposed"]
    assert _pass(run, "consolidate")["applied"] == {}


async def test_a_scope_with_nothing_new_costs_no_model_call(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    await run_dream(model_gateway, passes=["consolidate"])
    call_count = len(models.chat_calls)

    run = await run_dream(model_gateway, passes=["consolidate"])

    assert _pass(run, "consolidate")["state"] == "skipped"
    assert "nothing has changed" in _pass(run, "consolidate")["reason"]
    assert len(models.chat_calls) == call_count


async def test_a_scope_has_one_run_at_a_time(model_gateway: Gateway) -> None:
    await save_memories(model_gateway)
    first = await model_gateway.client.post("/v1/dreams", json={})

    second = await model_gateway.client.post("/v1/dreams", json={})
    other_user = await model_gateway.client.post("/v1/dreams", json={"user_id": "ada"})

    assert (first.status_code, second.status_code, other_user.status_code) == (201, 409, 201)


async def test_no_merge_crosses_users(model_gateway: Gateway, models: ModelServer) -> None:
    """The id of another user's similar memory is not offered, so it can't be merged or pruned."""
    ada_ids = await save_memories(model_gateway, user_id="ada")
    bob_ids = await save_memories(model_gateway, user_id="bob")
    plan = {
        "toDelete": [{"id": bob_ids[2], "reason": "ephemeral"}],
        "toSave": [{"content": "12 Rue Neuve, Lyon: Ada's home", "sourceIds": [ada_ids[0], bob_ids[1]]}],
    }
    models.chat_default = Reply(json.dumps(plan))

    run = await run_dream(model_gateway, passes=["consolidate"], user_id="ada")

    codes = {rejection["code"] for rejection in _pass(run, "consolidate")["rejections"]}
    assert "unknown_id" in codes
    for bob_id in bob_ids:
        assert (await model_gateway.client.get(f"/v1/memories/{bob_id}")).json()["state"] == "final"


Change = Callable[[Gateway, str], Coroutine[Any, Any, httpx.Response]]


async def _edit(model_gateway: Gateway, memory_id: str) -> httpx.Response:
    return await model_gateway.client.patch(f"/v1/memories/{memory_id}", json={"content": "Ada moved."})


async def _delete(model_gateway: Gateway, memory_id: str) -> httpx.Response:
    return await model_gateway.client.delete(f"/v1/memories/{memory_id}")


async def _revert(model_gateway: Gateway, memory_id: str) -> httpx.Response:
    return await model_gateway.client.post(f"/v1/memories/{memory_id}/revert", json={"version": 2})


@pytest.mark.parametrize("change", [_edit, _delete, _revert])
@pytest.mark.parametrize(("position", "kept"), [(0, {0, 1}), (2, {2})], ids=["a source", "a deletion"])
async def test_what_changed_while_the_model_was_asked_is_skipped_and_the_rest_is_applied(
    model_gateway: Gateway, models: ModelServer, change: Change, position: int, kept: set[int]
) -> None:
    """The change is made after the pass has read the memories and before its plan is applied."""
    ids = await save_memories(model_gateway)
    path = f"/v1/memories/{ids[position]}"
    text = (await model_gateway.client.get(path)).json()["content"]
    await _edit(model_gateway, ids[position])  # so that there is a version to go back to
    assert (await model_gateway.client.patch(path, json={"content": text})).is_success
    plan = str(merge_reply(ids).text)
    loop = asyncio.get_running_loop()

    def change_meanwhile(call: Call) -> str:
        assert ids[position] in call.prompt, "the model was shown the memory"
        changed = asyncio.run_coroutine_threadsafe(change(model_gateway, ids[position]), loop).result(10)
        assert changed.is_success
        return plan

    models.chat_default = Reply(change_meanwhile)

    run = await run_dream(model_gateway, passes=["consolidate"])

    skipped = [
        item for item in _pass(run, "consolidate")["rejections"] if item["code"] == "changed_meanwhile"
    ]
    assert [item["ids"] for item in skipped] == [[ids[position]]]
    expected = {ids[number] for number in {*kept, 3, 4}}
    expected -= {ids[position]} if change is _delete else set()
    contents = await live(model_gateway)
    assert expected <= set(contents)
    if change is not _delete:
        assert contents[ids[position]] == "Ada moved."
    applied = {"archived": 1} if position == 0 else {"created": 1, "archived": 2}
    assert _pass(run, "consolidate")["applied"] == applied


async def test_a_model_that_keeps_failing_ends_the_pass_and_the_next_one_begins(
    model_gateway: Gateway, models: ModelServer
) -> None:
    await save_memories(model_gateway)
    before = await live(model_gateway)
    models.chat_default = Reply("I would rather not.")

    run = await run_dream(model_gateway)

    assert run["state"] == "done"
    assert _pass(run, "consolidate")["state"] == "failed"
    assert _pass(run, "consolidate")["reason"]
    assert await live(model_gateway) == before


async def test_without_a_model_the_deterministic_passes_still_run(gateway: Gateway) -> None:
    await gateway.client.post("/v1/memories", json={"content": "Ship it: on Monday!"})
    await gateway.client.post("/v1/memories", json={"content": "Ship it on Monday."})

    run = await run_dream(gateway)

    assert _pass(run, "deduplicate")["applied"] == {"created": 1, "archived": 2}
    assert _pass(run, "consolidate")["state"] == "skipped"
    assert list((await live(gateway)).values()) == ["Ship it: on Monday!"]


async def test_memories_that_punctuation_distinguishes_are_not_deduplicated(gateway: Gateway) -> None:
    for content in ("We write it in C#.", "We write it in C."):
        await gateway.client.post("/v1/memories", json={"content": content})

    run = await run_dream(gateway, passes=["deduplicate"])

    assert _pass(run, "deduplicate")["applied"] == {}
    assert len(await live(gateway)) == 2
