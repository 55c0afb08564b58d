"""TR2, TR4 over HTTP: what a judge or the signs make of a fact that was mined, and of what it would end."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.foundation import config
from shared.foundation.stages import DreamPass
from shared.verification import decision
from shared.verification.claim import Verdict
from tests import run_pass, state
from tests.agent import Json
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.integration.forgetting.conftest import records_with
from tests.integration.mining.conftest import JUNE, MARCH, Talker, codes, fact, propose
from tests.standins.asked_claims import AskedClaim, reply_text
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer

ODENSE, VISIT = "The user lives in Odense.", "I'm visiting Odense."
ARTS, OTHER_ARTS = "The user studies arts in Aarhus.", "The user studies arts in Odense."
SAID_ARTS = "I study arts in Odense."


@pytest.fixture
async def doubter(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Talker]:
    """Serve a gateway whose judge is not trusted, with room for one proposal of each scope."""
    models.chat_default = propose()
    settings = make_settings(
        llm_base_url=models.url, llm_model="m", job_backoff=0.01, proposal_max_per_scope=1
    )
    async with running_without_jobs(settings, tenant, has_trusted_judge=False) as served:
        yield Talker(served)


def judging(verdict_of: Callable[[AskedClaim], Verdict]) -> Reply:
    return Reply(lambda call: reply_text(call, verdict_of))


async def mine(
    talker: Talker, models: ModelServer, said: str, content: str, **fields: Any
) -> tuple[str, Json]:
    """Have something said and a fact of it mined; return the session and the run."""
    session = await talker.talk(said, "I see.", at=JUNE)
    models.chat_default = propose(fact(content, (session, 1), **fields))
    return session, await talker.mine(session)


async def proposals(talker: Talker) -> list[Json]:
    path = "/v1/proposals"
    return list((await talker.request("GET", path, params={"user_id": "ada", "state": "held"}))["results"])


async def test_without_a_judge_a_doubtful_fact_waits_with_its_evidence_until_a_caller_approves(
    doubter: Talker, models: ModelServer
) -> None:
    session, run = await mine(doubter, models, VISIT, ODENSE, category="home")
    assert codes(run) == []
    assert await doubter.facts() == {}
    [held] = await proposals(doubter)
    assert (held["kind"], held["text"], held["signs"]) == ("fact", ODENSE, ["other_words"])
    assert held["evidence"] == [{"session_id": session, "seq": 1}]
    assert models.judge_calls == []
    reason = (await doubter.mine(session))["passes"][0]["reason"]
    assert reason == "too many proposals wait for a decision"
    await doubter.request("POST", f"/v1/proposals/{held['id']}", json={"action": "approve"})
    [memory] = (await doubter.facts()).values()
    assert (memory["content"], memory["category"], memory["decided_by"]) == (ODENSE, "home", "caller")
    assert (memory["source"]["session_id"], memory["source"]["seq"]) == (session, 1)


async def test_a_scope_full_of_proposals_leaves_its_turns_unread_until_there_is_room(
    doubter: Talker, models: ModelServer
) -> None:
    await mine(doubter, models, VISIT, ODENSE)
    asked = len(models.chat_calls)
    session, run = await mine(doubter, models, "I like tea.", "The user likes tea.")
    assert run["passes"][0]["reason"] == "too many proposals wait for a decision"
    assert len(models.chat_calls) == asked
    [held] = await proposals(doubter)
    await doubter.request("POST", f"/v1/proposals/{held['id']}", json={"action": "refuse"})
    await doubter.mine(session)
    assert list(await doubter.facts()) == ["The user likes tea."]


async def test_what_has_no_room_any_more_is_not_read_either(doubter: Talker, models: ModelServer) -> None:
    session = await doubter.talk(VISIT, "I see.", "We stopped at Kiel.", at=JUNE)
    kiel = "The user works in Kiel."
    models.chat_default = propose(fact(ODENSE, (session, 1)), fact(kiel, (session, 3)))
    await doubter.mine(session)
    [first] = await proposals(doubter)
    await doubter.request("POST", f"/v1/proposals/{first['id']}", json={"action": "refuse"})
    models.chat_default = propose(fact(kiel, (session, 3)))
    await doubter.mine(session)
    assert [held["text"] for held in await proposals(doubter)] == [kiel]


async def test_without_a_judge_what_has_no_sign_is_stored_and_closes_a_changed_value(
    doubter: Talker, models: ModelServer
) -> None:
    before = await doubter.save(ARTS, user_id="ada", enrich=False, occurred_at=MARCH, importance=0.5)
    await mine(doubter, models, SAID_ARTS, OTHER_ARTS, relation="changed", of=before["id"])
    [after] = (await doubter.facts()).values()
    assert (after["content"], after["valid_from"]) == (OTHER_ARTS, JUNE)
    assert (after["decided_by"], after["verdict"], after["judge_model"]) == ("signs", None, None)
    assert (await doubter.memory(before["id"]))["valid_until"] == JUNE


async def test_without_a_judge_a_matter_of_safety_is_contested_and_its_closing_waits(
    doubter: Talker, models: ModelServer
) -> None:
    before = await doubter.save(ARTS, user_id="ada", enrich=False, occurred_at=MARCH, importance=0.9)
    await mine(doubter, models, SAID_ARTS, OTHER_ARTS, relation="changed", of=before["id"])
    facts = await doubter.facts()
    assert set(facts) == {ARTS, OTHER_ARTS}
    assert facts[ARTS]["contested_with"] == [facts[OTHER_ARTS]["id"]]
    assert facts[OTHER_ARTS]["contested_with"] == [before["id"]]
    [held] = await proposals(doubter)
    assert (held["closes"], held["signs"]) == (before["id"], ["closes_safety_matter"])


async def test_without_a_judge_other_words_are_contested_and_nothing_waits(
    doubter: Talker, models: ModelServer
) -> None:
    work = "The user works at the harbour."
    before = await doubter.save(work, user_id="ada", enrich=False, occurred_at=MARCH)
    await mine(doubter, models, SAID_ARTS, OTHER_ARTS, relation="changed", of=before["id"])
    facts = await doubter.facts()
    assert facts[work]["contested_with"] == [facts[OTHER_ARTS]["id"]]
    assert await proposals(doubter) == []


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.NOT_SAID, "not_said"), (Verdict.CONTRADICTED, "contradicted")]
)
async def test_what_a_judge_does_not_find_is_refused(
    talker: Talker, models: ModelServer, verdict: Verdict, code: str
) -> None:
    models.judge_default = judging(lambda _: verdict)
    _, run = await mine(talker, models, "I like tea.", "The user likes tea.")
    assert codes(run) == [code]
    assert "tea" not in str(run["passes"][0]["rejections"]), "what was said is content"
    assert await talker.facts() == {}
    assert await proposals(talker) == []


async def test_what_a_judge_supports_is_stored_with_who_decided_whatever_its_words(
    talker: Talker, models: ModelServer
) -> None:
    await mine(talker, models, VISIT, ODENSE)
    [memory] = (await talker.facts()).values()
    assert memory["decided_by"] == "judge"
    assert memory["verdict"] == "supported"
    assert memory["judge_model"] == "m"


async def test_a_judge_decides_about_a_closing_apart(talker: Talker, models: ModelServer) -> None:
    models.judge_default = judging(
        lambda claim: Verdict.SUPPORTED if claim.closes is None else Verdict.NOT_SAID
    )
    before = await talker.save(ARTS, user_id="ada", enrich=False, occurred_at=MARCH)
    _, run = await mine(talker, models, SAID_ARTS, OTHER_ARTS, relation="changed", of=before["id"])
    assert codes(run) == ["not_said"]
    [rejection] = run["passes"][0]["rejections"]
    assert (rejection["kind"], rejection["ids"]) == ("closing", [before["id"]])
    assert set(await talker.facts()) == {ARTS, OTHER_ARTS}


async def test_while_a_trusted_judge_is_away_the_signs_decide(talker: Talker, models: ModelServer) -> None:
    models.judge_default = Status(503)
    session = await talker.talk(VISIT, "I see.", "I like tea.", at=JUNE)
    models.chat_default = propose(fact(ODENSE, (session, 1)), fact("The user likes tea.", (session, 3)))
    await talker.mine(session)
    assert models.judge_calls, "it was asked"
    [memory] = (await talker.facts()).values()
    assert (memory["content"], memory["decided_by"]) == ("The user likes tea.", "signs")
    assert [held["text"] for held in await proposals(talker)] == [ODENSE]


async def test_a_misquoted_fact_is_refused_before_anybody_judges(talker: Talker, models: ModelServer) -> None:
    _, run = await mine(talker, models, "I like tea.", "The user likes tea.", quotes=["I like coffee"])
    assert codes(run) == ["misquoted"]
    assert models.judge_calls == []
    assert await talker.facts() == {}


@pytest.mark.parametrize("has_judge", [True, False])
async def test_a_turn_that_is_deleted_while_the_judge_thinks_leaves_nothing(
    talker: Talker, models: ModelServer, monkeypatch: pytest.MonkeyPatch, *, has_judge: bool
) -> None:
    session = await talker.talk(VISIT, "I see.", at=JUNE)
    models.chat_default = propose(fact(ODENSE, (session, 1)))
    models.judge_default = models.judge_default if has_judge else Status(503)
    run = await talker.request("POST", f"/v1/sessions/{session}/mine", status=202)
    delete_while_judging(monkeypatch, talker.gateway, f"/v1/sessions/{session}/turns/1")
    await run_pass.run_pass(talker.gateway.resources, talker.tenant, run["id"], DreamPass.MINE_FACTS)
    assert models.judge_calls, "it was asked"
    assert await talker.facts() == {}
    assert await proposals(talker) == []
    async with state.watching(talker.gateway.resources.settings) as inspector:
        assert await records_with(inspector, talker.gateway, "Odense") == []


def delete_while_judging(monkeypatch: pytest.MonkeyPatch, gateway: Gateway, path: str) -> None:
    """Delete something after the verdicts and before the pass records."""
    decide = decision.decide

    async def decide_and_delete(*arguments: Any) -> Any:
        decided = await decide(*arguments)
        response = await gateway.client.delete(path)
        assert response.is_success, response.text
        return decided

    monkeypatch.setattr(decision, "decide", decide_and_delete)
