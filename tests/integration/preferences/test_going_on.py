"""MM5, DR7: a learnt preference goes on with its memory, whatever becomes of it; a user's own does not."""

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import ColumnElement, func, update

from shared.foundation.origin import UNKNOWN
from shared.foundation.scope import Scope
from shared.memory.longterm.table import memory
from shared.memory.preferences import write
from shared.memory.preferences.preference import PreferenceBasis
from shared.memory.preferences.write import LearntPreference
from tests.agent import Agent, Json
from tests.conftest import Gateway
from tests.integration.dreams.conftest import run_dream
from tests.integration.preferences.conftest import URL, put, rule, slots
from tests.integration.scratchpad.conftest import note, promote
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from workers.sweep import retention

WISH = "Ada travels first class."
SITUATION = {"situation": "travel first class"}
YESTERDAY, TOMORROW = "2020-01-01T00:00:00Z", "2990-01-01T00:00:00Z"
Change = Callable[[Agent, str], Awaitable[Any]]


async def learn(agent: Agent, scope: Json, text: str = WISH) -> str:
    """Promote a snippet, and return the id of its memory."""
    session = await agent.session(**scope)
    await note(agent, session, text)
    return str((await promote(agent, session))["results"][0]["memory_id"])


async def preferences(agent: Agent, scope: Json) -> list[Json]:
    return list((await agent.request("GET", URL, params=scope))["results"])


async def state_of(agent: Agent, scope: Json) -> tuple[str, list[Any]]:
    """Return the state of the only preference, and the values that apply in its situation."""
    [preference] = await preferences(agent, scope)
    return preference["state"], list((await slots(agent, **SITUATION, **scope)).values())


async def post(agent: Agent, memory_id: str, action: str, **body: Any) -> None:
    await agent.request("POST", f"/v1/memories/{memory_id}/{action}", json=body)


async def patch(agent: Agent, memory_id: str, **fields: Any) -> None:
    await agent.request("PATCH", f"/v1/memories/{memory_id}", json=fields)


@pytest.mark.parametrize(
    ("end", "take_back"),
    [
        (lambda agent, id_: post(agent, id_, "archive"), lambda agent, id_: post(agent, id_, "restore")),
        (
            lambda agent, id_: patch(agent, id_, valid_until=YESTERDAY),
            lambda agent, id_: patch(agent, id_, valid_until=None),
        ),
        (
            lambda agent, id_: patch(agent, id_, valid_from=TOMORROW),
            lambda agent, id_: patch(agent, id_, valid_from=YESTERDAY, valid_until=TOMORROW),
        ),
    ],
    ids=["archived", "closed", "not valid yet"],
)
async def test_it_is_suspended_while_its_memory_does_not_stand(
    agent: Agent, scope: Json, end: Change, take_back: Change
) -> None:
    memory_id = await learn(agent, scope)
    assert await state_of(agent, scope) == ("active", [WISH])
    await end(agent, memory_id)
    assert await state_of(agent, scope) == ("suspended", [])
    await take_back(agent, memory_id)
    assert await state_of(agent, scope) == ("active", [WISH])


async def test_a_suspended_one_of_the_users_own_gives_way_to_the_agents_and_names_nothing(
    agent: Agent, scope: Json
) -> None:
    memory_id = await learn(agent, scope)
    [preference] = await preferences(agent, scope)
    await put(agent, preference["key"], rule("of-agent", 1, flow="f"), agent_id=scope["agent_id"])
    await put(agent, "names-it", rule("x", 1, (preference["key"],), flow="g"), **scope)
    assert (await slots(agent, flow="g", **scope)).keys() == {"x", preference["key"]}
    await post(agent, memory_id, "archive")
    assert await slots(agent, flow="g", **scope) == {"x": 1, "of-agent": 1}


async def test_what_the_user_wrote_over_it_is_never_suspended(agent: Agent, scope: Json) -> None:
    memory_id = await learn(agent, scope)
    [preference] = await preferences(agent, scope)
    await put(agent, preference["key"], rule("class", "second", description=WISH), **scope)
    await post(agent, memory_id, "archive")
    assert await state_of(agent, scope) == ("active", ["second"])
    await agent.request("DELETE", f"/v1/memories/{memory_id}")
    assert await state_of(agent, scope) == ("active", ["second"])


async def test_an_edited_memory_takes_it_along_and_a_reverted_one_too(agent: Agent, scope: Json) -> None:
    memory_id = await learn(agent, scope)
    version = (await agent.memory(memory_id))["version"]
    await patch(agent, memory_id, importance=0.9)
    [untouched] = await preferences(agent, scope)
    await patch(agent, memory_id, content="Ada takes the night train.")
    assert await state_of(agent, scope) == ("active", [])
    [preference] = await preferences(agent, scope)
    assert preference["version"] > untouched["version"]
    answer = await slots(agent, situation="a night train is taken", **scope)
    assert list(answer.values()) == ["Ada takes the night train."]
    await post(agent, memory_id, "revert", version=version)
    assert await state_of(agent, scope) == ("active", [WISH])
    await patch(agent, memory_id, content="Ada travels first class, and pays by credit card.")
    assert await state_of(agent, scope) == ("awaiting_permission", [])
    await patch(agent, memory_id, content="Ada travels. " * 400)
    assert await preferences(agent, scope) == []


async def test_a_merged_memory_lets_it_go_on_with_the_successor_and_undo_gives_it_back(
    dreaming: Gateway, models: ModelServer
) -> None:
    agent, ada = Agent(dreaming.client, dreaming.tenant), {"user_id": "ada"}
    first = await learn(agent, ada)
    second = (await agent.save("Ada likes to travel in the first class.", enrich=False, **ada))["id"]
    merged = {
        "content": "Ada travels first class, and likes to travel in the first class.",
        "category": "user-preferences/travel",
        "sourceIds": [first, second],
    }
    models.chat_default = Reply(json.dumps({"toDelete": [], "toSave": [merged]}))
    run = await run_dream(dreaming, passes=["consolidate"], **ada)
    assert (await agent.memory(first))["archived_by"] == "dream"
    assert await state_of(agent, ada) == ("active", [WISH])
    [successor] = (await agent.memory(first))["superseded_by"]
    await post(agent, successor, "archive")
    assert await state_of(agent, ada) == ("suspended", [])
    await post(agent, successor, "restore")
    await agent.request("POST", f"/v1/dreams/{run['id']}/undo")
    [preference] = await preferences(agent, ada)
    assert (preference["state"], preference["memory_id"]) == ("active", first)
    await agent.request("DELETE", f"/v1/memories/{first}")
    assert await preferences(agent, ada) == []


async def _set(gateway: Gateway, memory_id: str, **columns: Any) -> None:
    async with gateway.resources.postgres.for_tenant(gateway.tenant) as tx:
        is_one: ColumnElement[bool] = (memory.c.tenant == gateway.tenant) & (memory.c.id == memory_id)
        await tx.execute(update(memory).where(is_one).values(state="archived", **columns))


@pytest.mark.parametrize("between", [False, True], ids=["next", "after another that is purged"])
async def test_when_its_memory_is_purged_a_successor_takes_it_over(
    agent: Agent, gateway: Gateway, scope: Json, *, between: bool
) -> None:
    long_ago = func.now() - timedelta(days=400)
    purged = await learn(agent, scope)
    heir = (await agent.save("Ada goes by the first class alone.", **scope))["id"]
    successors = [heir]
    if between:
        other = (await agent.save("Ada wants first class.", **scope))["id"]
        await _set(gateway, other, archived_at=long_ago, archived_by="dream", superseded_by=[heir])
        successors = ["0123456789ab", other]
    await _set(gateway, purged, archived_at=long_ago, archived_by="dream", superseded_by=successors)
    assert await state_of(agent, scope) == ("active", [WISH])

    assert await retention.purge_archived(gateway.resources, gateway.tenant) == 1 + between

    [preference] = await preferences(agent, scope)
    assert (preference["memory_id"], preference["state"]) == (heir, "active")
    await post(agent, heir, "archive")
    assert await state_of(agent, scope) == ("suspended", [])
    await agent.request("DELETE", f"/v1/memories/{heir}")
    assert await preferences(agent, scope) == []


@pytest.mark.parametrize(
    "columns",
    [
        {"archived_by": "dream", "superseded_by": []},
        {"archived_by": "dream", "superseded_by": ["0123456789ab"]},
        {"archived_by": "caller", "superseded_by": None},
        {"archived_by": "dream", "superseded_by": None, "valid_until": func.now() - timedelta(days=500)},
    ],
    ids=["without a successor", "whose successor is gone", "by a caller", "closed"],
)
async def test_when_a_memory_is_purged_that_nothing_takes_the_place_of_it_goes_too(
    agent: Agent, gateway: Gateway, scope: Json, columns: Json
) -> None:
    memory_id = await learn(agent, scope)
    other = (await agent.save("Ada flies.", **scope))["id"]
    successors = columns["superseded_by"]
    archived = {"archived_at": func.now() - timedelta(days=400)}
    await _set(
        gateway,
        memory_id,
        **columns | archived | {"superseded_by": [other] if successors is None else successors},
    )
    assert await state_of(agent, scope) == ("suspended", [])
    assert await retention.purge_archived(gateway.resources, gateway.tenant) == 1
    assert await preferences(agent, scope) == []


async def test_a_learnt_one_that_was_deleted_comes_back_only_if_somebody_asks(
    agent: Agent, gateway: Gateway, scope: Json
) -> None:
    memory_id = await learn(agent, scope)
    [preference] = await preferences(agent, scope)
    await agent.request("DELETE", f"{URL}/{preference['key']}", params=scope)
    key = preference["key"]
    learnt = LearntPreference(
        key, key, WISH, memory_id, PreferenceBasis.PROMOTION, requires_user_permission=False, origin=UNKNOWN
    )
    where = Scope(gateway.tenant, **scope)
    async with gateway.resources.transaction(gateway.tenant) as tx:
        assert await write.add_learnt(tx, where, [learnt]) == []
    await learn(agent, scope)  # a caller promotes the same again
    assert await state_of(agent, scope) == ("active", [WISH])
