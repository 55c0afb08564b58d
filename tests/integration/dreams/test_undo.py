"""DR7: undo takes back all that a run did, keeps what somebody has saved since, and is remembered."""

import json

from tests.conftest import Gateway
from tests.integration.dreams.conftest import (
    add_turns,
    create_session,
    live,
    merge_reply,
    run_dream,
    save_memories,
)
from tests.integration.dreams.plans import merging
from tests.integration.dreams.undone_runs import get, save, undo
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call


async def test_what_one_pass_created_and_the_next_merged_is_undone_wholly(
    model_gateway: Gateway, models: ModelServer
) -> None:
    originals = [
        await save(model_gateway, "Ship it: on Monday!"),
        await save(model_gateway, "Ship it on Monday."),
        await save(model_gateway, "The shipping day is Monday."),
    ]
    before = await live(model_gateway)

    def merge_all(call: Call) -> str:
        ids = [line.split("[ID:")[1][:12] for line in call.prompt.splitlines() if "[ID:" in line]
        return str(merging(("Ship it on Monday, the shipping day.", ids)).text)

    models.chat_default = Reply(merge_all)
    run = await run_dream(model_gateway, passes=["deduplicate", "consolidate"])
    assert list((await live(model_gateway)).values()) == ["Ship it on Monday, the shipping day."]

    undone = await undo(model_gateway, run)

    assert undone["kept"] == []
    assert sorted(undone["restored"]) == sorted(originals)
    assert len(undone["removed"]) == 2
    assert await live(model_gateway) == before


async def test_undo_keeps_a_merged_memory_that_was_saved_explicitly_since(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    run = await run_dream(model_gateway, passes=["consolidate"])
    successor = (await get(model_gateway, ids[0]))["superseded_by"][0]
    assert await save(model_gateway, "Ada lives in Lyon; her home is at 12 Rue Neuve.") == successor

    undone = await undo(model_gateway, run)

    assert successor in await live(model_gateway)
    reasons = {kept["entry_id"]: kept["reason"] for kept in undone["kept"]}
    assert reasons[successor] == "it was saved again since"
    assert set(reasons) == {successor, *ids[:2]}
    assert undone["restored"] == [ids[2]]


async def test_what_was_undone_is_not_done_again_by_the_next_run_until_its_text_changes(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merge_reply(ids)
    await undo(model_gateway, await run_dream(model_gateway, passes=["consolidate"]))
    before = await live(model_gateway)
    other_words = merging(("12 Rue Neuve in Lyon is where Ada lives, her home.", ids[:2]))
    plan = json.loads(str(other_words.text)) | {"toDelete": [{"id": ids[2], "reason": "ephemeral"}]}
    models.chat_default = Reply(json.dumps(plan))

    second = await run_dream(model_gateway, passes=["consolidate"])

    consolidation = second["passes"][0]
    assert await live(model_gateway) == before
    assert [rejection["code"] for rejection in consolidation["rejections"]] == ["undone_before"] * 2
    await model_gateway.client.patch(
        f"/v1/memories/{ids[0]}", json={"content": "Ada lives in Lyon, 12 Rue Neuve."}
    )
    after_edit = await run_dream(model_gateway, passes=["consolidate"])
    assert after_edit["passes"][0]["applied"] == {"created": 1, "archived": 2}


async def test_equal_memories_are_not_folded_again_after_it_was_undone(gateway: Gateway) -> None:
    await save(gateway, "Ship it: on Monday!")
    await save(gateway, "Ship it on Monday.")
    before = await live(gateway)
    await undo(gateway, await run_dream(gateway, passes=["deduplicate"]))

    second = await run_dream(gateway, passes=["deduplicate"])

    assert second["passes"][0]["applied"] == {}
    assert await live(gateway) == before


async def test_a_learned_memory_that_was_undone_is_not_learned_again(
    model_gateway: Gateway, models: ModelServer
) -> None:
    session = await create_session(model_gateway, "We moved the backup to 4 am.")
    episode = {"content": "The backup was moved to 4 am.", "category": "episodic/decision"}
    models.chat_default = Reply(json.dumps({"toSave": [episode]}))
    undone = await undo(model_gateway, await run_dream(model_gateway, passes=["extract_episodes"]))
    await add_turns(model_gateway, session, "As I said.")

    second = await run_dream(model_gateway, passes=["extract_episodes"])

    assert len(undone["removed"]) == 1
    assert second["passes"][0]["applied"] == {}
    assert await live(model_gateway) == {}


async def test_a_merge_into_a_third_live_memory_hands_over_everything_and_is_undone(
    model_gateway: Gateway, models: ModelServer
) -> None:
    text = "Ada lives in Lyon; her home is at 12 Rue Neuve."
    times = {"valid_from": "2026-03-01T00:00:00Z", "expires_at": "2126-03-01T00:00:00Z"}
    third = await save(model_gateway, text, tags=["city"], metadata={"team": "north"}, **times)
    first = await save(
        model_gateway,
        "Ada lives in Lyon at 12 Rue Neuve.",
        tags=["home"],
        metadata={"requires_user_permission": "true", "team": "south", "floor": "2"},
        importance=0.7,
    )
    second = await save(model_gateway, "Ada's home is 12 Rue Neuve in Lyon.", tags=["address"])
    before = await get(model_gateway, third)
    models.chat_default = merging((text, [first, second]))
    run = await run_dream(model_gateway, passes=["consolidate"])
    merged = await get(model_gateway, third)

    assert list(await live(model_gateway)) == [third]
    assert set(merged["tags"]) == {"city", "home", "address"}
    assert merged["metadata"] == {"team": "north", "floor": "2", "requires_user_permission": "true"}
    assert (merged["importance"], merged["reinforcement_count"]) == (0.7, 3)
    assert (merged["valid_from"], merged["expires_at"]) == (None, None), "the others were always true"
    found = await model_gateway.client.post(
        "/v1/memories/search", json={"query": "Lyon", "tags": ["address"]}
    )
    assert [memory["id"] for memory in found.json()["results"]] == [third], "the index knows the tag"

    undone = await undo(model_gateway, run)

    after = await get(model_gateway, third)
    names = ("content", "tags", "metadata", "importance", "reinforcement_count", "state", *times)
    assert {name: after[name] for name in names} == {name: before[name] for name in names}
    assert undone["unreinforced"] == [third]
    assert set(undone["restored"]) == {first, second}
    assert undone["kept"] == []


async def test_a_reinforcement_of_a_memory_that_was_edited_since_is_reported(
    model_gateway: Gateway, models: ModelServer
) -> None:
    text = "Ada lives in Lyon; her home is at 12 Rue Neuve."
    third = await save(model_gateway, text)
    first = await save(model_gateway, "Ada lives in Lyon at 12 Rue Neuve.", tags=["home"])
    second = await save(model_gateway, "Ada's home is 12 Rue Neuve in Lyon.")
    models.chat_default = merging((text, [first, second]))
    run = await run_dream(model_gateway, passes=["consolidate"])
    await model_gateway.client.patch(f"/v1/memories/{third}", json={"content": "Ada moved to Nice."})

    undone = await undo(model_gateway, run)

    after = await get(model_gateway, third)
    assert (after["content"], after["reinforcement_count"]) == ("Ada moved to Nice.", 1)
    assert after["tags"] == ["home"]
    assert [kept["entry_id"] for kept in undone["kept"]] == [third]
    assert set(undone["restored"]) == {first, second}


async def test_what_was_deleted_since_is_not_restored(model_gateway: Gateway, models: ModelServer) -> None:
    text = "Ada lives in Lyon; her home is at 12 Rue Neuve."
    third = await save(model_gateway, text)
    first = await save(model_gateway, "Ada lives in Lyon at 12 Rue Neuve.")
    second = await save(model_gateway, "Ada's home is 12 Rue Neuve in Lyon.")
    models.chat_default = merging((text, [first, second]))
    run = await run_dream(model_gateway, passes=["consolidate"])
    await model_gateway.client.delete(f"/v1/memories/{third}")

    undone = await undo(model_gateway, run)

    assert (undone["restored"], undone["unreinforced"]) == ([], [])
    reasons = {kept["entry_id"]: kept["reason"] for kept in undone["kept"]}
    assert reasons == dict.fromkeys([first, second, third], "it was deleted since")
    assert await live(model_gateway) == {}
