"""SE1, SE8: an agent's profile has a stable identity and the default store types of its sessions."""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import pytest

from shared.platform.agents.profile import identity_of
from tests.agent import Agent
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.agents.conftest import PROFILE

PROOF = {"public_key": "ssh-ed25519 AAAA", "document": "I am the support agent."}


async def test_a_profile_has_the_identity_of_its_public_key_and_document(agent: Agent) -> None:
    profile = await agent.request("PUT", PROFILE, json=PROOF)
    assert profile.items() >= (PROOF | {"id": "support", "store_types": None}).items()
    assert profile["identity"] == identity_of(PROOF["public_key"], PROOF["document"])
    assert await agent.request("GET", PROFILE) == profile


async def test_the_same_key_and_document_give_the_same_identity_to_every_agent_and_tenant(
    small_gateway: Gateway, agent: Agent
) -> None:
    profile = await agent.request("PUT", PROFILE, json=PROOF)
    assert (await agent.request("PUT", PROFILE, json=PROOF))["identity"] == profile["identity"]
    other_agent = await agent.request("PUT", "/v1/agents/sales", json=PROOF)
    async with await small_gateway.new_client(f"{small_gateway.tenant}-x") as client:
        other_tenant = (await client.put(PROFILE, json=PROOF)).json()
    assert profile["identity"] == other_agent["identity"] == other_tenant["identity"]


@pytest.mark.parametrize("changes", [{"public_key": "another"}, {"document": "another"}])
async def test_an_identity_once_set_cannot_be_changed(agent: Agent, changes: dict[str, str]) -> None:
    profile = await agent.request("PUT", PROFILE, json=PROOF)
    problem_details = await agent.request("PUT", PROFILE, json=PROOF | changes, status=HTTPStatus.CONFLICT)
    assert "identity" in problem_details["detail"]
    assert await agent.request("GET", PROFILE) == profile
    assert (await agent.request("PUT", PROFILE, json={}))["identity"] == profile["identity"]


async def test_of_many_identities_set_at_once_exactly_one_is_stored(agent: Agent) -> None:
    proofs = [{"public_key": f"key {n}", "document": "same"} for n in range(10)]
    responses = await asyncio.gather(*(agent.client.put(PROFILE, json=proof) for proof in proofs))
    assert sorted(response.status_code for response in responses) == [200] + [409] * 9
    (profile,) = [response.json() for response in responses if response.is_success]
    assert await agent.request("GET", PROFILE) == profile


async def test_a_profile_exists_from_the_first_write_of_any_kind(agent: Agent) -> None:
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)
    assert (await agent.request("GET", f"{PROFILE}/kv"))["results"] == []
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)
    await agent.request("PUT", f"{PROFILE}/kv/a", json={"value": 1})
    await agent.request("POST", "/v1/agents/b/texts", json={"content": "x"}, status=HTTPStatus.CREATED)
    await agent.request("PUT", "/v1/agents/c/files/x", content=b"x")
    for name in ("support", "b", "c"):
        profile = await agent.request("GET", f"/v1/agents/{name}")
        assert (profile["id"], profile["identity"]) == (name, None)


async def test_an_agent_has_many_sessions_and_neither_they_nor_subagents_have_an_identity(
    agent: Agent,
) -> None:
    profile = await agent.request("PUT", PROFILE, json=PROOF)
    kinds = ("session", "session", "patrol", "subagent")
    session_ids = [await agent.session(agent_id="support", kind=kind) for kind in kinds]
    sessions = (await agent.request("GET", "/v1/sessions", params={"agent_id": "support"}))["results"]
    assert {session["id"] for session in sessions} == set(session_ids)
    for session in sessions:
        assert session["agent_id"] == "support"
        assert "identity" not in session
        assert profile["identity"] not in json.dumps(session)
    assert (await agent.request("GET", PROFILE))["identity"] == profile["identity"]


async def test_sessions_that_name_no_store_types_have_those_of_their_agent(agent: Agent) -> None:
    await agent.request("PUT", PROFILE, json={"store_types": ["tmp", "basic_session", "tmp"]})

    async def stores(**body: Any) -> list[str]:
        session = await agent.request("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED)
        return list(session["store_types"])

    assert await stores(agent_id="support") == ["tmp", "basic_session"]
    assert await stores(agent_id="support", store_types=["basic_session"]) == ["basic_session"]
    assert await stores(agent_id="support", store_types=[]) == ["tmp"]
    assert await stores(agent_id="another") == ["basic_session"]
    assert (await agent.request("PUT", PROFILE, json=PROOF))["store_types"] == ["tmp", "basic_session"]
    assert (await agent.request("PUT", PROFILE, json={"store_types": []}))["store_types"] == ["tmp"]
    assert await stores(agent_id="support") == ["tmp"]
    assert (await agent.request("PUT", PROFILE, json={"store_types": None}))["store_types"] is None
    assert await stores(agent_id="support") == ["basic_session"]


async def test_a_session_opened_again_is_the_same_though_the_default_has_changed_since(agent: Agent) -> None:
    body = {"id": "s", "agent_id": "support"}
    await agent.request("PUT", PROFILE, json={"store_types": ["tmp"]})
    first = await agent.request("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED)
    await agent.request("PUT", PROFILE, json={"store_types": ["basic_session"]})
    assert await agent.request("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED) == first
    other_body = body | {"store_types": ["basic_session"]}
    await agent.request("POST", "/v1/sessions", json=other_body, status=HTTPStatus.CONFLICT)


@pytest.mark.parametrize("bindings", [{"agent_id": "sales"}, {"user_id": "ada"}])
async def test_a_key_bound_to_another_agent_or_to_a_user_cannot_use_a_profile(
    small_gateway: Gateway, agent: Agent, bindings: dict[str, str]
) -> None:
    await agent.request("PUT", PROFILE, json=PROOF)
    requests: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", "", {}),
        ("PUT", "", {"json": {}}),
        ("GET", "/kv", {}),
        ("PUT", "/kv/k", {"json": {"value": 1}}),
        ("POST", "/texts", {"json": {"content": "x"}}),
        ("GET", "/texts", {}),
        ("DELETE", "/texts", {}),
        ("PUT", "/files/f", {"content": b"x"}),
        ("GET", "/files", {}),
    ]
    async with await small_gateway.new_client(**bindings) as client:
        for method, path, arguments in requests:
            response = await client.request(method, f"{PROFILE}{path}", **arguments)
            assert response.status_code == HTTPStatus.FORBIDDEN, f"{method} {path}"
            assert next(iter(bindings.values())) in response.json()["detail"]


async def test_a_key_bound_to_the_agent_can_use_its_profile(small_gateway: Gateway) -> None:
    async with await small_gateway.new_client(agent_id="support", rights=["read", "write"]) as client:
        assert (await client.put(PROFILE, json=PROOF)).is_success
        assert (await client.get(PROFILE)).json()["document"] == PROOF["document"]


async def test_agent_ids_keys_and_file_names_may_have_slashes_and_signs(agent: Agent) -> None:
    for name in ("team/a", "ada@example.org", "kv", "kv/team"):
        path = f"/v1/agents/{name}"
        assert (await agent.request("PUT", path, json=PROOF))["id"] == name
        await agent.request("PUT", f"{path}/kv/x/kv/files/y", json={"value": name})
        assert (await agent.request("GET", f"{path}/kv/x/kv/files/y"))["value"] == name
        await agent.request("PUT", f"{path}/files/kv/b.txt", content=name.encode())
        assert (await agent.client.get(f"{path}/files/kv/b.txt")).text == name
        assert (await agent.request("GET", path))["id"] == name


@pytest.mark.parametrize(
    ("field", "rule", "body"),
    [
        ("document", "must be given", {"public_key": "k"}),
        ("public_key", "must be given", {"document": "d"}),
        ("public_key", "blank", {"public_key": " ", "document": "d"}),
        ("document", "blank", {"public_key": "k", "document": ""}),
        ("public_key", "at most 16000", {"public_key": "k" * 16_001, "document": "d"}),
        ("document", "at most 64000", {"public_key": "k", "document": "d" * 64_001}),
        ("public_key", "string", {"public_key": 1, "document": "d"}),
        ("body", "NUL", {"public_key": "k\x00", "document": "d"}),
        ("store_types", "unknown store type", {"store_types": ["paper"]}),
        ("store_types", "list", {"store_types": "tmp"}),
        ("identity", "Extra inputs", {"identity": "f" * 64}),
    ],
)
async def test_an_invalid_profile_is_refused_and_not_created(
    agent: Agent, field: str, rule: str, body: dict[str, Any]
) -> None:
    assert problem.names_violation(await agent.client.put(PROFILE, json=body), field, rule)
    await agent.request("GET", PROFILE, status=HTTPStatus.NOT_FOUND)


@pytest.mark.parametrize("name", ["%20", "a%E2%80%A8b", "x" * 129])
async def test_an_agents_id_that_breaks_a_rule_is_refused(agent: Agent, name: str) -> None:
    assert problem.names_violation(await agent.client.put(f"/v1/agents/{name}", json={}), "agent_id")
