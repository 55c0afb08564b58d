"""A key that is bound to an agent, a user or a namespace reaches nothing else of its own tenant.

Keys of the same tenant that are bound to another agent or user send the requests of every route, with
the ids of the sample agent's and user's records.
"""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.isolation.asking import contains_secret, send
from tests.isolation.cases import CASES, SHARED_IN_TENANT, SHARED_TOOLS
from tests.isolation.conftest import IsolationStack
from tests.isolation.record_routes import MESSAGE
from tests.isolation.sample_tenant import SECRET, scope
from tests.state import State

OTHER = "somebody-else"
BINDINGS = [{"agent_id": OTHER}, {"user_id": OTHER}, {"agent_id": OTHER, "user_id": OTHER}]
bindings = pytest.mark.parametrize("bound", BINDINGS, ids="+".join)


@bindings
async def test_a_bound_key_reaches_nothing_of_another_agent_or_user(
    stack: IsolationStack, bound: dict[str, str]
) -> None:
    """Send the requests under the owner's agent and user, and under those of the key."""
    own = replace(stack.ids, agent=bound.get("agent_id", stack.ids.agent))
    own = replace(own, user=bound.get("user_id", stack.ids.user))
    wrong: list[str] = []
    async with await stack.gateway.new_client(**bound) as client:
        for route, case in CASES.items():
            calls = case(stack.ids)
            for call in calls + [call for call in case(own) if call not in calls]:
                response = await send(client, route, call)
                is_shared = route in SHARED_IN_TENANT or call.path.get("name") in SHARED_TOOLS
                if response.status_code >= 500 or (contains_secret(response) and not is_shared):
                    wrong.append(f"{route}: {response.status_code} {response.text}")
    assert not wrong, "\n".join(wrong)
    _assert_unchanged(stack, await stack.state())


def _assert_unchanged(stack: IsolationStack, state: State) -> None:
    """Assert that all records are unchanged. The lists of namespaces and of scratch stores may have grown."""
    tag = f"{{{stack.gateway.tenant}}}"
    name_lists = (f"{tag}:namespaces", f"{tag}:expiries", f":scratch:{tag}:")
    changed = {name for name, value in stack.initial_state.items() if state.get(name) != value}
    assert not {name for name in changed if not any(name_list in name for name_list in name_lists)}


@bindings
async def test_naming_another_agent_or_user_is_forbidden_and_names_the_binding(
    stack: IsolationStack, bound: dict[str, str]
) -> None:
    async with await stack.gateway.new_client(**bound) as client:
        responses = [
            await client.get("/v1/memories", params=scope(stack.ids)),
            await client.get("/v1/sessions", params=scope(stack.ids)),
            await client.get("/v1/memories/export", params=scope(stack.ids)),
            await client.post("/v1/memories", json={"content": "x", **scope(stack.ids)}),
            await client.post("/v1/memories/search", json={"query": "x", **scope(stack.ids)}),
            await client.post("/v1/turns/search", json={"query": "x", **scope(stack.ids)}),
            await client.post("/v1/sessions", json=scope(stack.ids)),
        ]
    field = next(iter(bound))
    assert [response.status_code for response in responses] == [403] * len(responses)
    assert {response.json()["detail"] for response in responses} == {
        f"this key is bound to {field} '{OTHER}'"
    }


@bindings
async def test_records_of_another_agent_or_user_are_not_found(
    stack: IsolationStack, bound: dict[str, str]
) -> None:
    ids = stack.ids
    paths = [
        f"/v1/memories/{ids.memory}",
        f"/v1/memories/{ids.memory}/history",
        f"/v1/sessions/{ids.session}",
        f"/v1/sessions/{ids.session}/turns",
        f"/v1/working/{ids.working_key}",
        f"/v1/working/patrol/{ids.patrol}/{SECRET}",
        f"/v1/working/subagent/{ids.patrol}/report-index",
    ]
    async with await stack.gateway.new_client(**bound) as client:
        assert [(await client.get(path)).status_code for path in paths] == [404] * len(paths)
        context = await client.post(f"/v1/sessions/{ids.session}/context", json=MESSAGE)
        assert context.status_code == 404


@pytest.mark.parametrize("kind", ["patrol", "subagent", "session"])
@bindings
async def test_a_bound_key_clears_its_own_namespace_and_no_whole_kind_of_namespaces(
    stack: IsolationStack, bound: dict[str, str], kind: str
) -> None:
    async with await stack.gateway.new_client(**bound) as client:
        session = {"kind": kind, "id": f"clearing-{kind}-{'-'.join(bound)}"}
        namespace = (await client.post("/v1/sessions", json=session)).json()["namespace"]
        await client.put(f"/v1/working/{namespace}/note", json={"value": "mine"})
        whole_kind = await client.delete("/v1/working", params={"prefix": kind})
        assert whole_kind.status_code == 403
        assert OTHER in whole_kind.json()["detail"]
        assert (await client.delete("/v1/working", params={"prefix": namespace})).json()["deleted"] == 1
    _assert_unchanged(stack, await stack.state())


async def test_a_key_bound_to_an_agent_erases_no_user_because_an_erasure_covers_every_agent(
    stack: IsolationStack,
) -> None:
    async with await stack.gateway.new_client(agent_id=OTHER) as client:
        response = await client.delete(f"/v1/users/{stack.ids.user}")
    assert response.status_code == 403
    assert OTHER in response.json()["detail"]
    _assert_unchanged(stack, await stack.state())


async def test_the_same_idempotency_key_of_two_bound_keys_means_two_requests(stack: IsolationStack) -> None:
    body, headers = {"content": "the same words"}, {"idempotency-key": "both-chose-this"}
    owners = []
    for user in ("ada", "bob", "ada"):
        async with await stack.gateway.new_client(user_id=user) as client:
            saved = await client.post("/v1/memories", json=body, headers=headers)
            assert saved.status_code == 201, saved.text
            owners.append((saved.json()["user_id"], saved.json()["reinforcement_count"]))
    assert owners == [("ada", 1), ("bob", 1), ("ada", 1)]


async def test_a_users_key_sees_the_common_memories_and_its_own(stack: IsolationStack) -> None:
    for user in (None, "carol", "dave"):
        memory = {"content": f"a lantern, told by {user}", "agent_id": "inn", "user_id": user}
        assert (await stack.gateway.client.post("/v1/memories", json=memory)).status_code == 201
    async with await stack.gateway.new_client(agent_id="inn", user_id="carol") as client:
        hits = await client.post("/v1/memories/search", json={"query": "lantern"})
        listed = await client.get("/v1/memories")
    for response in (hits, listed):
        assert {memory["user_id"] for memory in response.json()["results"]} == {None, "carol"}


async def test_entries_that_a_key_may_not_see_take_no_place_among_its_hits(stack: IsolationStack) -> None:
    body = {"id": "harbour/night", "agent_id": "harbour"}
    others = [{"id": f"else{n}", "agent_id": "elsewhere"} for n in range(5)]
    for session in (body, *others):
        assert (await stack.gateway.client.post("/v1/sessions", json=session)).status_code == 201
    for key in ("session/harbour:night/mine", *(f"session/else{n}/theirs" for n in range(5))):
        written = await stack.gateway.client.put(f"/v1/working/{key}", json={"value": "the harbour lamp"})
        assert written.status_code == 200, written.text
    async with await stack.gateway.new_client(agent_id="harbour") as client:
        for query in ("harbour lamp", None):
            hits = await client.post("/v1/working/search", json={"query": query, "limit": 1})
            assert [entry["key"] for entry in hits.json()["results"]] == ["session/harbour:night/mine"]


async def test_a_key_can_be_bound_to_the_namespace_of_a_session_whose_id_is_a_path(
    stack: IsolationStack,
) -> None:
    async with await stack.gateway.new_client(namespace="session/quay:1") as client:
        assert (await client.put("/v1/working/note", json={"value": "x"})).json()[
            "key"
        ] == "session/quay:1/note"


async def test_a_key_bound_to_a_namespace_writes_only_there(stack: IsolationStack) -> None:
    async with await stack.gateway.new_client(namespace="session/mine") as client:
        written = await client.put("/v1/working/note", json={"value": "mine"})
        assert written.json()["key"] == "session/mine/note"
        responses = [
            await client.put(f"/v1/working/{stack.ids.working_key}", json={"value": "x"}),
            await client.delete(f"/v1/working/{stack.ids.working_key}"),
            await client.delete("/v1/working", params={"prefix": stack.ids.namespace}),
            await client.delete("/v1/working", params={"prefix": "session"}),
            await client.put("/v1/working/x", json={"value": "x"}, params={"namespace": stack.ids.namespace}),
        ]
    assert [response.status_code for response in responses] == [403] * len(responses)
    assert all("session/mine" in response.json()["detail"] for response in responses)
    _assert_unchanged(stack, await stack.state())


async def test_a_key_does_only_what_its_rights_allow(stack: IsolationStack) -> None:
    """Require `read` for searches and resolving, `write` for all that writes, and `admin` for erasing a user.

    A context and a popped turn show what the key has not named: they require `read` besides. A batch requires
    nothing itself, and of each operation what that requires. A refusal changes nothing.
    """
    routes = [route for route in CASES if not route.startswith("GET") and route != "POST /v1/batch"]
    searches = {route for route in routes if route.endswith(_SEARCHES)}
    erasures = {route for route in routes if "/v1/users/" in route}
    statuses = await _statuses(stack, ["read"], routes)
    assert statuses == {route: 200 if route in searches else 403 for route in routes}
    reading = {*searches, *(route for route in routes if route.endswith(("/context", "/turns/pop")))}
    assert await _statuses(stack, ["write"], reading) == dict.fromkeys(reading, 403)
    assert await _statuses(stack, ["read", "write"], erasures) == dict.fromkeys(erasures, 403)
    async with await stack.gateway.new_client(rights=["read"]) as reader:
        batch = await send(reader, "POST /v1/batch", CASES["POST /v1/batch"](stack.ids)[0])
    assert [result["status"] for result in batch.json()["results"]] == [200, 403, 403, 200, 403, 200]
    _assert_unchanged(stack, await stack.state())


_SEARCHES = ("/search", "/preferences/resolve", "/graph/match", "/graph/traverse")


async def _statuses(stack: IsolationStack, rights: list[str], routes: Iterable[str]) -> dict[str, int]:
    """Return the statuses of the first request of each route, sent with a key of these rights."""
    async with await stack.gateway.new_client(rights=rights) as client:
        return {
            route: (await send(client, route, CASES[route](stack.ids)[0])).status_code for route in routes
        }
