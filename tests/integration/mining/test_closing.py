"""CV5: what health, money or an account depends on is closed by a judge, and by no sign."""

from typing import Any

import pytest

from tests.agent import Json
from tests.integration.forgetting.interruptions import delete_while_thinking
from tests.integration.mining.conftest import JUNE, MARCH, Talker, codes, fact, propose
from tests.standins.faults import Status
from tests.standins.models import ModelServer

ALLERGY, ENDED = "The user is allergic to penicillin.", "The user is no longer allergic to penicillin."
AARHUS, ODENSE = "The user studies arts in Aarhus.", "The user is visiting Odense."
MOVED = "The user studies arts in Odense."


async def test_a_judge_that_supports_it_closes_what_matters(talker: Talker, models: ModelServer) -> None:
    memory = await talker.save(ALLERGY, user_id="ada", enrich=False, occurred_at=MARCH, importance=0.9)
    session = await talker.talk("I'm no longer allergic to penicillin.", "I see.", at=JUNE)
    models.chat_default = propose(fact(ENDED, (session, 1), relation="changed", of=memory["id"]))
    run = await talker.mine(session)
    assert codes(run) == []
    [after] = (await talker.facts()).values()
    assert (after["content"], after["valid_from"]) == (ENDED, JUNE)
    closed = await talker.memory(memory["id"])
    assert (closed["valid_until"], closed["superseded_by"]) == (JUNE, [after["id"]])
    assert [change["action"] for change in await talker.diff(run)] == ["created", "closed"]


@pytest.mark.parametrize(
    ("known", "fields", "said", "proposed"),
    [
        (ALLERGY, {}, "My sister is no longer allergic to penicillin.", ENDED),
        (AARHUS, {"importance": 0.8}, "I'm visiting Odense.", ODENSE),
        (AARHUS, {"category": "safety/home"}, "I'm visiting Odense.", ODENSE),
    ],
)
async def test_without_a_judge_that_answers_what_matters_stays_open(
    talker: Talker, models: ModelServer, known: str, fields: dict[str, Any], said: str, proposed: str
) -> None:
    models.judge_default = Status(503)
    memory = await talker.save(known, user_id="ada", enrich=False, occurred_at=MARCH, **fields)
    session = await talker.talk(said, "I see.", at=JUNE)
    models.chat_default = propose(fact(proposed, (session, 1), relation="changed", of=memory["id"]))
    await talker.mine(session)
    assert (await talker.facts())[known]["valid_until"] is None
    listed = await talker.request("GET", "/v1/proposals", params={"user_id": "ada", "state": "held"})
    assert [(held["text"], held["closes"]) for held in listed["results"]] == [(proposed, memory["id"])]


async def test_what_is_confirmed_a_third_time_while_the_model_thinks_stays_open(
    talker: Talker, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.judge_default = Status(503)
    body: Json = {"content": AARHUS, "user_id": "ada", "enrich": False, "occurred_at": MARCH}
    memory = await talker.save(**body)
    await talker.save(**body)
    session = await talker.talk("I study arts in Odense.", "Nice!", at=JUNE)
    models.chat_default = propose(fact(MOVED, (session, 1), relation="changed", of=memory["id"]))
    with monkeypatch.context() as patched:
        delete_while_thinking(patched, talker.gateway, "/v1/memories", "POST", json=body)
        run = await talker.mine(session)
    assert codes(run) == ["protected"]
    assert set(await talker.facts()) == {AARHUS, MOVED}
