"""A key that is bound to an agent, a user or a namespace reaches nothing beyond, inside its own tenant.

Every route is asked with the ids of what the planted agent and user own, by keys of the same
tenant that are bound to somebody else.
"""

from dataclasses import replace

import pytest

from tests.isolation.asking import ask, betrays
from tests.isolation.cases import CASES, EVERYBODYS, MESSAGE
from tests.isolation.conftest import IsolationStack
from tests.isolation.planted import CANARY, scope
from tests.state import State

OTHER = "somebody-else"
BINDINGS = [{"agent_id": OTHER}, {"user_id": OTHER}, {"agent_id": OTHER, "user_id": OTHER}]
bindings = pytest.mark.parametrize("bound", BINDINGS, ids="+".join)


@bindings
@pytest.mark.parametrize("route", CASES)
async def test_a_bound_key_reaches_nothing_of_another_agent_or_user(
    house: IsolationStack, bound: dict[str, str], route: str
) -> None:
    """Asked under the victim's names, and under the key's own."""
    own = replace(house.ids, agent=bound.get("agent_id", house.ids.agent))
    own = replace(own, user=bound.get("user_id", house.ids.user))
    async with await house.gateway.another(**bound) as client:
        for ids in (house.ids, own):
            for call in CASES[route](ids):
                answer = await ask(client, route, call)
                assert answer.status_code < 500, answer.text
                assert route in EVERYBODYS or not betrays(answer), answer.text
    _assert_untouched(house, await house.state())


def _assert_untouched(house: IsolationStack, now: State) -> None:
    """All that was planted is there; the lists of namespaces and of scratch stores, hints, may have grown."""
    tag = f"{{{house.gateway.tenant}}}"
    hints = (f"{tag}:namespaces", f"{tag}:expiries", f":scratch:{tag}:")
    changed = {name for name, value in house.planted.items() if now.get(name) != value}
    assert not {name for name in changed if not any(hint in name for hint in hints)}


@bindings
async def test_naming_another_agent_or_user_is_forbidden_and_names_the_binding(
    house: IsolationStack, bound: dict[str, str]
) -> None:
    async with await house.gateway.another(**bound) as client:
        answers = [
            await client.get("/v1/memories", params=scope(house.ids)),
            await client.get("/v1/sessions", params=scope(house.ids)),
            await client.get("/v1/memories/export", params=scope(house.ids)),
            await client.post("/v1/memories", json={"content": "x", **scope(house.ids)}),
            await client.post("/v1/memories/search", json={"query": "x", **scope(house.ids)}),
            await client.post("/v1/turns/search", json={"query": "x", **scope(house.ids)}),
            await client.post("/v1/sessions", json=scope(house.ids)),
        ]
    field = next(iter(bound))
    assert [one.status_code for one in answers] == [403] * len(answers)
    assert {one.json()["detail"] for one in answers} == {f"this key is bound to {field} '{OTHER}'"}


@bindings
async def test_another_agents_or_users_things_are_not_found(
    house: IsolationStack, bound: dict[str, str]
) -> None:
    ids = house.ids
    paths = [
        f"/v1/memories/{ids.memory}",
        f"/v1/memories/{ids.memory}/history",
        f"/v1/sessions/{ids.session}",
        f"/v1/sessions/{ids.session}/turns",
        f"/v1/working/{ids.desk_key}",
        f"/v1/working/patrol/{ids.patrol}/{CANARY}",
        f"/v1/working/subagent/{ids.patrol}/report-index",
    ]
    async with await house.gateway.another(**bound) as client:
        assert [(await client.get(path)).status_code for path in paths] == [404] * len(paths)
        told = await client.post(f"/v1/sessions/{ids.session}/context", json=MESSAGE)
        assert told.status_code == 404


@pytest.mark.parametrize("kind", ["patrol", "subagent", "session"])
@bindings
async def test_a_bound_key_clears_one_namespace_of_its_own_and_no_whole_kind_of_desks(
    house: IsolationStack, bound: dict[str, str], kind: str
) -> None:
    async with await house.gateway.another(**bound) as client:
        opened = {"kind": kind, "id": f"clearing-{kind}-{'-'.join(bound)}"}
        mine = (await client.post("/v1/sessions", json=opened)).json()["namespace"]
        await client.put(f"/v1/working/{mine}/note", json={"value": "mine"})
        whole = await client.delete("/v1/working", params={"prefix": kind})
        assert whole.status_code == 403
        assert OTHER in whole.json()["detail"]
        assert (await client.delete("/v1/working", params={"prefix": mine})).json()["deleted"] == 1
    _assert_untouched(house, await house.state())


async def test_an_agents_key_erases_no_user_because_an_erasure_covers_every_agent(
    house: IsolationStack,
) -> None:
    async with await house.gateway.another(agent_id=OTHER) as client:
        answer = await client.delete(f"/v1/users/{house.ids.user}")
    assert answer.status_code == 403
    assert OTHER in answer.json()["detail"]
    _assert_untouched(house, await house.state())


async def test_the_same_request_key_of_two_bound_keys_is_two_requests(house: IsolationStack) -> None:
    body, headers = {"content": "the same words"}, {"idempotency-key": "both-chose-this"}
    owners = []
    for user in ("ada", "bob", "ada"):
        async with await house.gateway.another(user_id=user) as client:
            saved = await client.post("/v1/memories", json=body, headers=headers)
            assert saved.status_code == 201, saved.text
            owners.append((saved.json()["user_id"], saved.json()["reinforcement_count"]))
    assert owners == [("ada", 1), ("bob", 1), ("ada", 1)]


async def test_a_users_key_sees_what_is_common_and_its_own(house: IsolationStack) -> None:
    for user in (None, "carol", "dave"):
        fact = {"content": f"a lantern, told by {user}", "agent_id": "inn", "user_id": user}
        assert (await house.gateway.client.post("/v1/memories", json=fact)).status_code == 201
    async with await house.gateway.another(agent_id="inn", user_id="carol") as client:
        found = await client.post("/v1/memories/search", json={"query": "lantern"})
        listed = await client.get("/v1/memories")
    for answer in (found, listed):
        assert {one["user_id"] for one in answer.json()["results"]} == {None, "carol"}


async def test_others_desks_take_no_place_among_the_best_that_a_key_is_shown(house: IsolationStack) -> None:
    body = {"id": "harbour/night", "agent_id": "harbour"}
    assert (await house.gateway.client.post("/v1/sessions", json=body)).status_code == 201
    for key in ("session/harbour:night/mine", *(f"session/else{n}/theirs" for n in range(5))):
        written = await house.gateway.client.put(f"/v1/working/{key}", json={"value": "the harbour lamp"})
        assert written.status_code == 200, written.text
    async with await house.gateway.another(agent_id="harbour") as client:
        for query in ("harbour lamp", None):
            found = await client.post("/v1/working/search", json={"query": query, "limit": 1})
            assert [one["key"] for one in found.json()["results"]] == ["session/harbour:night/mine"]


async def test_a_key_can_be_bound_to_the_desk_of_a_session_with_a_path_for_an_id(
    house: IsolationStack,
) -> None:
    async with await house.gateway.another(namespace="session/quay:1") as client:
        assert (await client.put("/v1/working/note", json={"value": "x"})).json()[
            "key"
        ] == "session/quay:1/note"


async def test_a_namespaces_key_writes_there_and_nowhere_else(house: IsolationStack) -> None:
    async with await house.gateway.another(namespace="session/mine") as client:
        written = await client.put("/v1/working/note", json={"value": "mine"})
        assert written.json()["key"] == "session/mine/note"
        refused = [
            await client.put(f"/v1/working/{house.ids.desk_key}", json={"value": "x"}),
            await client.delete(f"/v1/working/{house.ids.desk_key}"),
            await client.delete("/v1/working", params={"prefix": house.ids.namespace}),
            await client.delete("/v1/working", params={"prefix": "session"}),
            await client.put("/v1/working/x", json={"value": "x"}, params={"namespace": house.ids.namespace}),
        ]
    assert [one.status_code for one in refused] == [403] * len(refused)
    assert all("session/mine" in one.json()["detail"] for one in refused)
    _assert_untouched(house, await house.state())


@pytest.mark.parametrize("route", [route for route in CASES if not route.startswith("GET")])
async def test_a_key_does_only_what_its_rights_say(house: IsolationStack, route: str) -> None:
    """`read` alone searches; whatever writes asks for `write`, erasing a user for `admin`."""
    searches, erases = route.endswith("/search"), "/v1/users/" in route
    assert await _status(house, route, ["read"]) == (200 if searches else 403)
    assert not searches or await _status(house, route, ["write"]) == 403
    assert not erases or await _status(house, route, ["read", "write"]) == 403
    _assert_untouched(house, await house.state())


async def _status(house: IsolationStack, route: str, rights: list[str]) -> int:
    async with await house.gateway.another(rights=rights) as client:
        return (await ask(client, route, CASES[route](house.ids)[0])).status_code
