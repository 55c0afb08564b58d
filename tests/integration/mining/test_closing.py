"""CV5: no sentence closes what health, money or an account depends on, and the run says what was refused."""

from typing import Any

import pytest

from tests.agent import Json
from tests.integration.forgetting.interruptions import delete_while_thinking
from tests.integration.mining.conftest import JUNE, MARCH, Talker, codes, fact, propose
from tests.standins.models import ModelServer

ALLERGY, ENDED = "The user is allergic to penicillin.", "The user is no longer allergic to penicillin."
AARHUS, ODENSE = "The user lives in Aarhus.", "The user is visiting Odense."
MOVED = "The user lives in Odense."


@pytest.mark.parametrize(
    ("known", "fields", "said", "proposed"),
    [
        (ALLERGY, {"importance": 0.9}, "My sister is no longer allergic to penicillin.", ENDED),
        (ALLERGY, {}, "My sister is no longer allergic to penicillin.", ENDED),
        (AARHUS, {"importance": 0.8}, "I'm visiting Odense.", ODENSE),
        (AARHUS, {"category": "safety/home"}, "I'm visiting Odense.", ODENSE),
    ],
)
async def test_a_fact_that_matters_stays_open_beside_what_was_said_later(
    talker: Talker, models: ModelServer, known: str, fields: dict[str, Any], said: str, proposed: str
) -> None:
    memory = await talker.save(known, user_id="ada", enrich=False, occurred_at=MARCH, **fields)
    session = await talker.talk(said, "I see.", at=JUNE)
    models.chat_default = propose(fact(proposed, (session, 1), relation="changed", of=memory["id"]))
    run = await talker.mine(session)
    assert codes(run) == ["protected"]
    [rejection] = run["passes"][0]["rejections"]
    assert (rejection["kind"], rejection["ids"]) == ("closing", [memory["id"]])
    facts = await talker.facts()
    assert set(facts) == {known, proposed}
    assert facts[known] == memory | {"last_seen_at": facts[known]["last_seen_at"]}
    assert facts[proposed]["valid_from"] is None, "nobody knows what it began after"
    assert [change["action"] for change in await talker.diff(run)] == ["created"]


async def test_what_is_confirmed_a_third_time_while_the_model_thinks_stays_open(
    talker: Talker, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body: Json = {"content": AARHUS, "user_id": "ada", "enrich": False, "occurred_at": MARCH}
    memory = await talker.save(**body)
    await talker.save(**body)
    session = await talker.talk("I live in Odense these days.", "Nice!", at=JUNE)
    models.chat_default = propose(fact(MOVED, (session, 1), relation="changed", of=memory["id"]))
    with monkeypatch.context() as patched:
        delete_while_thinking(patched, talker.gateway, "/v1/memories", "POST", json=body)
        run = await talker.mine(session)
    assert codes(run) == ["protected"]
    assert set(await talker.facts()) == {AARHUS, MOVED}
