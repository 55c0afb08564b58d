"""CV4, FG2 for CV5: what was mined goes with the turns that said it, also while the model is asked."""

from typing import Any

import pytest

from tests import state
from tests.integration.forgetting.conftest import records_with
from tests.integration.forgetting.interruptions import delete_while_thinking
from tests.integration.mining.conftest import JUNE, Talker, fact, propose
from tests.integration.mining.home import AARHUS, ODENSE, move_to_odense, tell_of_aarhus
from tests.standins.models import ModelServer

EDIT: dict[str, Any] = {"json": {"content": "We moved from Aarhus to Bremen."}}


async def test_a_deleted_turn_takes_its_facts_and_what_they_had_replaced_is_right_again(
    talker: Talker, models: ModelServer
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    session, _ = await move_to_odense(talker, models, memory["id"])
    await talker.request("DELETE", f"/v1/sessions/{session}/turns/1")
    assert list(await talker.facts()) == [AARHUS]
    reopened = await talker.memory(memory["id"])
    assert (reopened["valid_until"], reopened["superseded_by"]) == (None, [])
    assert await talker.search_contents("Aarhus", user_id="ada") == [AARHUS]


async def test_an_edited_turn_is_mined_again_as_it_is_now(talker: Talker, models: ModelServer) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    session, _ = await move_to_odense(talker, models, memory["id"])
    await talker.request("PATCH", f"/v1/sessions/{session}/turns/1", **EDIT)
    bremen = "The user moved from Aarhus to Bremen."
    models.chat_default = propose(fact(bremen, (session, 1), relation="changed", of=memory["id"]))
    await talker.mine(session)
    assert list(await talker.facts()) == [bremen]
    assert set(await talker.facts(validity="any")) == {AARHUS, bremen}


async def test_a_fact_with_another_source_stays_when_one_is_withdrawn(
    talker: Talker, models: ModelServer
) -> None:
    first, memory = await tell_of_aarhus(talker, models)
    second = await talker.talk("Aarhus is where I live.", "Yes.", at=JUNE)
    models.chat_default = propose(fact(AARHUS, (second, 1), relation="same", of=memory["id"]))
    await talker.mine(second)
    await talker.request("DELETE", f"/v1/sessions/{first}/turns/1")
    [left] = (await talker.facts()).values()
    assert [source["session_id"] for source in left["sources"]] == [second]
    await talker.request("DELETE", f"/v1/sessions/{second}/turns/1")
    assert await talker.facts() == {}


async def test_what_a_caller_has_closed_otherwise_stays_closed(talker: Talker, models: ModelServer) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    session, _ = await move_to_odense(talker, models, memory["id"])
    until = {"valid_until": "2026-05-01T00:00:00Z"}
    await talker.request("PATCH", f"/v1/memories/{memory['id']}", json=until)
    await talker.request("DELETE", f"/v1/sessions/{session}/turns/1")
    assert (await talker.memory(memory["id"]))["valid_until"] == until["valid_until"]


@pytest.mark.parametrize(
    ("method", "path", "more"),
    [
        ("PATCH", "/v1/sessions/trip/turns/1", EDIT),
        ("DELETE", "/v1/sessions/trip/turns/1", {}),
        ("DELETE", "/v1/sessions/trip", {}),
        ("DELETE", "/v1/users/ada", {}),
    ],
)
async def test_what_was_withdrawn_while_the_model_was_asked_leaves_nothing(
    talker: Talker,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    more: dict[str, Any],
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    await talker.talk("We moved from Aarhus to Odense.", "Oh!", at=JUNE, id="trip")
    models.chat_default = propose(fact(ODENSE, ("trip", 1), relation="changed", of=memory["id"]))
    run = await talker.request("POST", "/v1/sessions/trip/mine", status=202)
    delete_while_thinking(monkeypatch, talker.gateway, path, method, **more)
    from shared.foundation.stages import DreamPass
    from tests import run_pass

    await run_pass.run_pass(talker.gateway.resources, talker.tenant, run["id"], DreamPass.MINE_FACTS)
    assert models.chat_calls, "the model was asked"
    is_erased = path == "/v1/users/ada"
    assert list(await talker.facts()) == ([] if is_erased else [AARHUS])
    async with state.watching(talker.gateway.resources.settings) as inspector:
        assert await records_with(inspector, talker.gateway, "Odense") == []
