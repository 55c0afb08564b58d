"""CV5: a fact that the model was not shown, because it is new or one of very many, is not stored twice."""

import pytest

from shared.foundation.stages import DreamPass
from tests import run_pass
from tests.integration.forgetting.interruptions import delete_while_thinking
from tests.integration.mining.conftest import JUNE, MARCH, Talker, fact, propose
from tests.integration.mining.home import AARHUS, tell_of_aarhus
from tests.standins.models import ModelServer
from workers.enrichment import known_facts


async def test_a_text_that_was_saved_while_the_model_was_asked_is_joined(
    talker: Talker, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await talker.talk("I live in Aarhus.", "Noted.", at=MARCH)
    models.chat_default = propose(fact(AARHUS.upper(), (session, 1)))
    run = await talker.request("POST", f"/v1/sessions/{session}/mine", status=202)
    body = {"content": AARHUS, "user_id": "ada", "enrich": False}
    delete_while_thinking(monkeypatch, talker.gateway, "/v1/memories", "POST", json=body)
    await run_pass.run_pass(talker.gateway.resources, talker.tenant, run["id"], DreamPass.MINE_FACTS)
    listed = await talker.request("GET", "/v1/memories", params={"user_id": "ada"})
    [memory] = listed["results"]
    assert (memory["content"], memory["occurred_at"], memory["reinforcement_count"]) == (AARHUS, None, 2)
    assert [change["action"] for change in await talker.diff(run)] == ["reinforced"]


async def test_a_text_that_is_known_but_was_not_shown_is_joined(
    talker: Talker, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, memory = await tell_of_aarhus(talker, models)
    monkeypatch.setattr(known_facts, "MAX_MEMORIES", 0)
    session = await talker.talk("Aarhus is my home.", "Yes.", at=JUNE)
    models.chat_default = propose(fact(AARHUS, (session, 1)))
    await talker.mine(session)
    assert (await talker.memory(memory["id"]))["reinforcement_count"] == 2
    assert list(await talker.facts()) == [AARHUS]
