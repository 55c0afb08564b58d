"""DR5: a judge decides about each merge; without one, what is in doubt waits, and its sources stay live."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from http import HTTPStatus
from typing import Any

import pytest

from shared.foundation import config
from shared.verification.claim import Verdict
from tests.agent import Agent
from tests.conftest import Gateway
from tests.draining import running_without_jobs
from tests.integration.dreams.conftest import live, merge_reply, run_dream, save_memories
from tests.integration.dreams.plans import merging
from tests.integration.dreams.undone_runs import get, undo
from tests.standins.asked_claims import AskedClaim, asked_claims, reply_text
from tests.standins.behaviours import Reply, Status
from tests.standins.models import ModelServer
from tests.standins.wire import Call

Json = dict[str, Any]
MERGED = "Ada lives in Lyon; her home is at 12 Rue Neuve."
LOSSY = "Ada lives in Lyon."
ADDING = "Ada lives in Lyon at 12 Rue Neuve with Bertrand."
DENYING = "Ada does not live in Lyon at 12 Rue Neuve, her home."


@pytest.fixture
async def unjudged(
    make_settings: Callable[..., config.Settings], models: ModelServer, tenant: str
) -> AsyncIterator[Gateway]:
    """Serve a gateway with a model that is not trusted as a judge."""
    settings = make_settings(llm_base_url=models.url, llm_model="m", job_backoff=0.01)
    async with running_without_jobs(settings, tenant, has_trusted_judge=False) as served:
        yield served


async def consolidate(gateway: Gateway) -> Json:
    """Run the pass and return the run."""
    return await run_dream(gateway, passes=["consolidate"])


async def held(gateway: Gateway) -> list[Json]:
    agent = Agent(gateway.client, gateway.tenant)
    return list((await agent.request("GET", "/v1/proposals", params={"state": "held"}))["results"])


async def approve(gateway: Gateway, proposal: Json, status: int = HTTPStatus.OK) -> Json:
    agent = Agent(gateway.client, gateway.tenant)
    path = f"/v1/proposals/{proposal['id']}"
    return dict(await agent.request("POST", path, json={"action": "approve"}, status=status))


def refusing(verdict: Verdict) -> Reply:
    def verdict_of(claim: AskedClaim) -> Verdict:
        return verdict if claim.statement == LOSSY else Verdict.SUPPORTED

    return Reply(lambda call: reply_text(call, verdict_of))


async def test_a_merge_that_the_judge_finds_in_its_sources_is_applied_whatever_words_it_has(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default = merging((LOSSY, ids[:2]))
    run = await consolidate(model_gateway)
    assert run["passes"][0]["applied"] == {"created": 1, "archived": 2}
    sources = [await get(model_gateway, id_) for id_ in ids[:2]]
    [merged_id] = sources[0]["superseded_by"]
    merged = await get(model_gateway, merged_id)
    decided = (merged["content"], merged["decided_by"], merged["verdict"], merged["judge_model"])
    assert decided == (LOSSY, "judge", "supported", "m")
    [claim] = asked_claims(models.judge_calls[0])
    assert (claim.statement, claim.evidence) == (LOSSY, tuple(memory["content"] for memory in sources))
    assert len(models.chat_calls) == 1
    [found] = (await Agent(model_gateway.client, model_gateway.tenant).search("Neuve"))["results"]
    assert (found["id"], found["text_of"]) == (merged_id, "evidence")


@pytest.mark.parametrize("verdict", [Verdict.NOT_SAID, Verdict.CONTRADICTED])
async def test_a_merge_that_the_judge_does_not_find_leaves_its_sources_live(
    model_gateway: Gateway, models: ModelServer, verdict: Verdict
) -> None:
    ids = await save_memories(model_gateway)
    before = await live(model_gateway)
    also = {"content": "Ada plays the oboe on Tuesdays, in an orchestra.", "sourceIds": [ids[4]]}
    saves = [{"content": LOSSY, "sourceIds": ids[:2]}, also]
    deletions = [{"id": ids[0], "reason": "ephemeral"}]
    models.chat_default = Reply(json.dumps({"toDelete": deletions, "toSave": saves}))
    models.judge_default = refusing(verdict)
    run = await consolidate(model_gateway)
    consolidation = run["passes"][0]
    assert consolidation["applied"] == {"created": 1, "archived": 1}
    [rejection] = consolidation["rejections"]
    assert (rejection["code"], rejection["ids"], rejection["index"]) == ("not_said", ids[:2], 0)
    assert "Lyon" not in json.dumps(rejection)
    after = await live(model_gateway)
    assert {id_: after.get(id_) for id_ in ids[:4]} == {id_: before[id_] for id_ in ids[:4]}
    assert await held(model_gateway) == []
    assert len(models.chat_calls) == 1, "nothing is asked once more"


@pytest.mark.parametrize(
    ("content", "sign"), [(LOSSY, "lost"), (ADDING, "added"), (DENYING, "negation")], ids=str
)
async def test_without_a_judge_a_merge_in_doubt_waits_with_its_sources_as_evidence(
    unjudged: Gateway, models: ModelServer, content: str, sign: str
) -> None:
    ids = await save_memories(unjudged)
    before = await live(unjudged)
    models.chat_default = merging((content, ids[:2]), category="user/home", tags=["home"])
    run = await consolidate(unjudged)
    assert run["passes"][0]["applied"] == {"held": 1}
    assert await live(unjudged) == before
    [proposal] = await held(unjudged)
    assert (proposal["kind"], proposal["text"]) == ("merge", content)
    assert sign in proposal["signs"]
    assert sorted(item["memory_id"] for item in proposal["evidence"]) == sorted(ids[:2])
    assert models.judge_calls == []


async def test_an_approval_of_a_merge_does_what_the_pass_would_have_done(
    unjudged: Gateway, models: ModelServer
) -> None:
    """Both scopes have the same memories: in one the judge is away when the merge is decided."""
    merged = []
    for is_held in (True, False):
        ids = await save_memories(unjudged, user_id="ann" if is_held else "bea")
        content = LOSSY if is_held else MERGED
        models.chat_default = merging((content, ids[:2]), category="user/home", tags=["home"])
        await run_dream(unjudged, passes=["consolidate"], user_id="ann" if is_held else "bea")
        if is_held:
            params = {"state": "held", "user_id": "ann"}
            agent = Agent(unjudged.client, unjudged.tenant)
            [proposal] = (await agent.request("GET", "/v1/proposals", params=params))["results"]
            await approve(unjudged, proposal)
        sources = [await get(unjudged, id_) for id_ in ids[:2]]
        [merged_id] = {id_ for source in sources for id_ in source["superseded_by"]}
        merged.append((sources, await get(unjudged, merged_id), ids))
    (held_sources, approved, ann_ids), (sources, applied, bea_ids) = merged
    assert (approved["content"], applied["content"]) == (LOSSY, MERGED)
    assert (approved["decided_by"], applied["decided_by"]) == ("caller", "signs")
    same = ("category", "tags", "metadata", "importance", "state", "reinforcement_count", "origin", "key")
    assert {name: approved[name] for name in same} == {name: applied[name] for name in same}
    assert (approved["derived_from"], applied["derived_from"]) == (ann_ids[:2], bea_ids[:2])
    for held_source, source in zip(held_sources, sources, strict=True):
        assert held_source["state"] == source["state"]
        assert held_source["archived_by"] == source["archived_by"]


async def test_a_judge_that_is_away_leaves_a_merge_to_the_signs(
    model_gateway: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(model_gateway)
    models.chat_default, models.judge_default = merging((LOSSY, ids[:2])), Status(503)
    run = await consolidate(model_gateway)
    assert (run["passes"][0]["state"], run["passes"][0]["applied"]) == ("done", {"held": 1})
    assert len(models.judge_calls) >= 1
    [proposal] = await held(model_gateway)
    assert "lost" in proposal["signs"]


async def test_a_merge_in_doubt_of_a_source_that_was_edited_meanwhile_does_not_wait(
    unjudged: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(unjudged)
    loop = asyncio.get_running_loop()

    def edit_meanwhile(call: Call) -> str:
        del call
        request = unjudged.client.patch(f"/v1/memories/{ids[0]}", json={"content": "Ada lives in Oslo."})
        assert asyncio.run_coroutine_threadsafe(request, loop).result(10).is_success
        return str(merging((LOSSY, ids[:2])).text)

    models.chat_default = Reply(edit_meanwhile)
    run = await consolidate(unjudged)
    assert await held(unjudged) == []
    assert "changed_meanwhile" in [skipped["code"] for skipped in run["passes"][0]["rejections"]]
    assert (await live(unjudged))[ids[0]] == "Ada lives in Oslo."


async def test_a_merge_by_a_judge_is_undone_with_its_run(model_gateway: Gateway, models: ModelServer) -> None:
    ids = await save_memories(model_gateway)
    before = await live(model_gateway)
    models.chat_default = merging((LOSSY, ids[:2]))
    run = await consolidate(model_gateway)
    assert await live(model_gateway) != before
    assert sorted((await undo(model_gateway, run))["restored"]) == sorted(ids[:2])
    assert await live(model_gateway) == before


async def test_an_undone_run_takes_back_nothing_that_waits(unjudged: Gateway, models: ModelServer) -> None:
    ids = await save_memories(unjudged)
    lossy = json.loads(str(merging((LOSSY, ids[:2])).text))
    deletion = {"toDelete": [{"id": ids[2], "reason": "ephemeral"}]}
    models.chat_default = Reply(json.dumps(lossy | deletion))
    before = await live(unjudged)
    run = await consolidate(unjudged)
    assert run["passes"][0]["applied"] == {"archived": 1, "held": 1}
    assert (await undo(unjudged, run))["restored"] == [ids[2]]
    assert await live(unjudged) == before
    [proposal] = await held(unjudged)
    assert (await approve(unjudged, proposal))["state"] == "approved"


async def test_a_merge_that_was_undone_does_not_wait_to_be_done_again(
    unjudged: Gateway, models: ModelServer
) -> None:
    ids = await save_memories(unjudged)
    models.chat_default = merge_reply(ids)
    await undo(unjudged, await consolidate(unjudged))
    before = await live(unjudged)
    models.chat_default = merging((LOSSY, ids[:2]))
    run = await consolidate(unjudged)
    assert "undone_before" in [skipped["code"] for skipped in run["passes"][0]["rejections"]]
    assert (await held(unjudged), await live(unjudged)) == ([], before)
