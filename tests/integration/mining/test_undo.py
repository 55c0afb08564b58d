"""DR7 for CV5: each thing that a mining run did can be undone, but for what somebody has changed since."""

import pytest

from tests.agent import Json
from tests.integration.mining.conftest import JUNE, Talker, fact, propose
from tests.integration.mining.home import AARHUS, ODENSE, move_to_odense, tell_of_aarhus
from tests.standins.models import ModelServer


async def undo(talker: Talker, run: Json) -> Json:
    return dict(await talker.request("POST", f"/v1/dreams/{run['id']}/undo"))


async def test_an_undone_change_is_open_again_and_is_not_made_again(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    undone = await undo(talker, run)
    assert (undone["reopened"], len(undone["removed"]), undone["kept"]) == ([memory["id"]], 1, [])
    reopened = await talker.memory(memory["id"])
    assert (reopened["valid_until"], reopened["superseded_by"]) == (None, [])
    assert list(await talker.facts()) == [AARHUS]
    assert (await talker.search_contents("Aarhus", user_id="ada")) == [AARHUS], "the index knows it"
    session = await talker.talk("We left Aarhus for Odense.", "Oh!", at=JUNE)
    reworded = "The user left Aarhus for Odense."
    models.chat_default = propose(fact(reworded, (session, 1), relation="changed", of=memory["id"]))
    [rejection] = (await talker.mine(session))["passes"][0]["rejections"]
    assert rejection["code"] == "undone_before"
    assert set(await talker.facts()) == {AARHUS, reworded}


async def test_an_undone_fact_goes_and_an_undone_repetition_is_counted_down(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    session = await talker.talk("Aarhus is where I live, with a cat.", "Yes.", at=JUNE)
    models.chat_default = propose(
        fact(AARHUS, (session, 1), relation="same", of=memory["id"]),
        fact("The user has a cat.", (session, 1)),
    )
    run = await talker.mine(session)
    undone = await undo(talker, run)
    assert (len(undone["removed"]), undone["unreinforced"]) == (1, [memory["id"]])
    assert list(await talker.facts()) == [AARHUS]
    counted_down = await talker.memory(memory["id"])
    assert counted_down["reinforcement_count"] == 1
    assert counted_down["sources"] == memory["sources"], "the session of the repetition is none of them"


async def test_what_was_changed_since_stays_with_what_it_replaced(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    new = (await talker.facts())[ODENSE]
    await talker.request("PATCH", f"/v1/memories/{new['id']}", json={"tags": ["home"]})
    undone = await undo(talker, run)
    assert {item["entry_id"]: item["reason"] for item in undone["kept"]} == {
        new["id"]: "it was changed since",
        memory["id"]: "what replaced it was changed since and stays",
    }
    assert list(await talker.facts()) == [ODENSE]


@pytest.mark.parametrize(
    ("edit", "is_reopened"),
    [
        ({"tags": ["home"]}, True),
        ({"content": "The user lives in Aarhus, in a tent."}, True),
        ({"valid_until": "2026-05-01T00:00:00Z"}, False),
        ({"superseded_by": []}, True),
    ],
)
async def test_an_edit_of_what_was_closed_stays_and_only_another_end_keeps_it_closed(
    talker: Talker, models: ModelServer, edit: Json, *, is_reopened: bool
) -> None:
    """Otherwise neither would be right: what replaced it is gone."""
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    path = f"/v1/memories/{memory['id']}"
    edited = await talker.request("PATCH", path, json=edit)
    undone = await undo(talker, run)
    assert undone["reopened"] == ([memory["id"]] if is_reopened else [])
    after = await talker.request("GET", path)
    assert after["valid_until"] == (None if is_reopened else edit["valid_until"])
    assert {name: after[name] for name in ("content", "tags")} == {
        name: edited[name] for name in ("content", "tags")
    }
    assert list(await talker.facts()) == ([edited["content"]] if is_reopened else [])


async def test_what_was_closed_for_something_else_since_stays_closed(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    other = await talker.save("The user lives in Bremen.", user_id="ada", enrich=False)
    changes = {"superseded_by": [other["id"]]}
    await talker.request("PATCH", f"/v1/memories/{memory['id']}", json=changes)
    assert {"entry_id": memory["id"], "reason": "it was changed since"} in (await undo(talker, run))["kept"]


async def test_what_was_archived_since_it_was_closed_stays_archived(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    await talker.request("POST", f"/v1/memories/{memory['id']}/archive")
    assert {"entry_id": memory["id"], "reason": "it was archived since"} in (await undo(talker, run))["kept"]
    assert (await talker.memory(memory["id"]))["valid_until"] is not None


async def test_what_a_live_memory_says_by_now_stays_closed(talker: Talker, models: ModelServer) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    repeated = await talker.save(AARHUS, user_id="ada", occurred_at=memory["occurred_at"], enrich=False)
    undone = await undo(talker, run)
    reason = f"memory '{repeated['id']}' says this already"
    assert undone["kept"] == [{"entry_id": memory["id"], "reason": reason}]


async def test_an_undone_repetition_takes_its_sources_and_no_others_also_after_a_change(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    session = await talker.talk("Aarhus is where I live.", "Yes.", at=JUNE)
    models.chat_default = propose(fact(AARHUS, (session, 1), relation="same", of=memory["id"]))
    run = await talker.mine(session)
    later = await talker.talk("Aarhus is still home.", "Good.", at=JUNE)
    models.chat_default = propose(fact(AARHUS, (later, 1), relation="same", of=memory["id"]))
    await talker.mine(later)
    undone = await undo(talker, run)
    reason = "it was changed since: only observations and their sources were taken back"
    assert undone["kept"] == [{"entry_id": memory["id"], "reason": reason}]
    kept = await talker.memory(memory["id"])
    assert kept["reinforcement_count"] == 2
    sessions = [source["session_id"] for source in kept["sources"]]
    assert sessions == [memory["source"]["session_id"], later]


async def test_what_was_replaced_is_open_again_if_what_replaced_it_was_deleted(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    _, run = await move_to_odense(talker, models, memory["id"])
    new = (await talker.facts())[ODENSE]
    await talker.request("DELETE", f"/v1/memories/{new['id']}")
    undone = await undo(talker, run)
    assert undone["reopened"] == [memory["id"]]
    assert undone["kept"] == [{"entry_id": new["id"], "reason": "it was deleted since"}]
    assert list(await talker.facts()) == [AARHUS]
