"""SE1, SE8: an agent's root: a stable identity, the default store types of its sessions."""

import asyncio
import json
from http import HTTPStatus
from typing import Any

import pytest

from shared.platform.agents.profile import identity_of
from tests.badinput import problem
from tests.conftest import Gateway
from tests.integration.agents.conftest import ROOT
from tests.journey.agent import Agent

PROOF = {"public_key": "ssh-ed25519 AAAA", "document": "I am the support agent."}


async def test_a_root_has_the_identity_that_its_public_key_and_document_make(agent: Agent) -> None:
    root = await agent.ask("PUT", ROOT, json=PROOF)
    assert root.items() >= (PROOF | {"id": "support", "store_types": None}).items()
    assert root["identity"] == identity_of(PROOF["public_key"], PROOF["document"])
    assert await agent.ask("GET", ROOT) == root


async def test_the_same_key_and_document_give_the_same_identity_whoever_has_them(
    small: Gateway, agent: Agent
) -> None:
    here = await agent.ask("PUT", ROOT, json=PROOF)
    assert (await agent.ask("PUT", ROOT, json=PROOF))["identity"] == here["identity"]
    named_otherwise = await agent.ask("PUT", "/v1/agents/sales", json=PROOF)
    async with await small.another(f"{small.tenant}-x") as client:
        elsewhere = (await client.put(ROOT, json=PROOF)).json()
    assert here["identity"] == named_otherwise["identity"] == elsewhere["identity"]


@pytest.mark.parametrize("changed", [{"public_key": "another"}, {"document": "another"}])
async def test_an_identity_once_set_is_never_another(agent: Agent, changed: dict[str, str]) -> None:
    root = await agent.ask("PUT", ROOT, json=PROOF)
    refused = await agent.ask("PUT", ROOT, json=PROOF | changed, status=HTTPStatus.CONFLICT)
    assert "identity" in refused["detail"]
    assert await agent.ask("GET", ROOT) == root
    assert (await agent.ask("PUT", ROOT, json={}))["identity"] == root["identity"]


async def test_of_many_who_set_an_identity_at_once_one_does(agent: Agent) -> None:
    proofs = [{"public_key": f"key {n}", "document": "same"} for n in range(10)]
    answers = await asyncio.gather(*(agent.client.put(ROOT, json=proof) for proof in proofs))
    assert sorted(one.status_code for one in answers) == [200] + [409] * 9
    (winner,) = [one.json() for one in answers if one.is_success]
    assert await agent.ask("GET", ROOT) == winner


async def test_a_root_is_there_from_its_first_write_whatever_is_written(agent: Agent) -> None:
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)
    assert (await agent.ask("GET", f"{ROOT}/kv"))["results"] == []
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)
    await agent.ask("PUT", f"{ROOT}/kv/a", json={"value": 1})
    await agent.ask("POST", "/v1/agents/b/texts", json={"content": "x"}, status=HTTPStatus.CREATED)
    await agent.ask("PUT", "/v1/agents/c/files/x", content=b"x")
    for name in ("support", "b", "c"):
        root = await agent.ask("GET", f"/v1/agents/{name}")
        assert (root["id"], root["identity"]) == (name, None)


async def test_an_agent_has_many_sessions_and_neither_they_nor_subagents_have_an_identity(
    agent: Agent,
) -> None:
    root = await agent.ask("PUT", ROOT, json=PROOF)
    kinds = ("session", "session", "patrol", "subagent")
    opened = [await agent.session(agent_id="support", kind=kind) for kind in kinds]
    listed = (await agent.ask("GET", "/v1/sessions", params={"agent_id": "support"}))["results"]
    assert {one["id"] for one in listed} == set(opened)
    for session in listed:
        assert session["agent_id"] == "support"
        assert "identity" not in session
        assert root["identity"] not in json.dumps(session)
    assert (await agent.ask("GET", ROOT))["identity"] == root["identity"]


async def test_sessions_that_name_no_store_types_have_those_of_their_agents_root(agent: Agent) -> None:
    await agent.ask("PUT", ROOT, json={"store_types": ["tmp", "basic_session", "tmp"]})

    async def stores(**body: Any) -> list[str]:
        opened = await agent.ask("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED)
        return list(opened["store_types"])

    assert await stores(agent_id="support") == ["tmp", "basic_session"]
    assert await stores(agent_id="support", store_types=["basic_session"]) == ["basic_session"]
    assert await stores(agent_id="support", store_types=[]) == ["tmp"]
    assert await stores(agent_id="another") == ["basic_session"]
    assert (await agent.ask("PUT", ROOT, json=PROOF))["store_types"] == ["tmp", "basic_session"]
    assert (await agent.ask("PUT", ROOT, json={"store_types": []}))["store_types"] == ["tmp"]
    assert await stores(agent_id="support") == ["tmp"]
    assert (await agent.ask("PUT", ROOT, json={"store_types": None}))["store_types"] is None
    assert await stores(agent_id="support") == ["basic_session"]


async def test_a_session_opened_again_is_the_same_though_the_default_has_changed_since(agent: Agent) -> None:
    body = {"id": "s", "agent_id": "support"}
    await agent.ask("PUT", ROOT, json={"store_types": ["tmp"]})
    first = await agent.ask("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED)
    await agent.ask("PUT", ROOT, json={"store_types": ["basic_session"]})
    assert await agent.ask("POST", "/v1/sessions", json=body, status=HTTPStatus.CREATED) == first
    named = body | {"store_types": ["basic_session"]}
    await agent.ask("POST", "/v1/sessions", json=named, status=HTTPStatus.CONFLICT)


@pytest.mark.parametrize("bound", [{"agent_id": "sales"}, {"user_id": "ada"}])
async def test_a_key_that_is_bound_to_another_agent_or_to_a_user_has_no_part_in_a_root(
    small: Gateway, agent: Agent, bound: dict[str, str]
) -> None:
    await agent.ask("PUT", ROOT, json=PROOF)
    ways: list[tuple[str, str, dict[str, Any]]] = [
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
    async with await small.another(**bound) as client:
        for method, path, sent in ways:
            answer = await client.request(method, f"{ROOT}{path}", **sent)
            assert answer.status_code == HTTPStatus.FORBIDDEN, f"{method} {path}"
            assert next(iter(bound.values())) in answer.json()["detail"]


async def test_a_key_that_is_bound_to_the_agent_has_its_root(small: Gateway) -> None:
    async with await small.another(agent_id="support", rights=["read", "write"]) as client:
        assert (await client.put(ROOT, json=PROOF)).is_success
        assert (await client.get(ROOT)).json()["document"] == PROOF["document"]


async def test_an_agents_id_may_have_slashes_and_signs_and_what_it_holds_may_too(agent: Agent) -> None:
    for name in ("team/a", "ada@example.org", "kv", "kv/team"):
        path = f"/v1/agents/{name}"
        assert (await agent.ask("PUT", path, json=PROOF))["id"] == name
        await agent.ask("PUT", f"{path}/kv/x/kv/files/y", json={"value": name})
        assert (await agent.ask("GET", f"{path}/kv/x/kv/files/y"))["value"] == name
        await agent.ask("PUT", f"{path}/files/kv/b.txt", content=name.encode())
        assert (await agent.client.get(f"{path}/files/kv/b.txt")).text == name
        assert (await agent.ask("GET", path))["id"] == name


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
async def test_a_root_that_breaks_a_rule_is_refused_and_not_made(
    agent: Agent, field: str, rule: str, body: dict[str, Any]
) -> None:
    assert problem.names(await agent.client.put(ROOT, json=body), field, rule)
    await agent.ask("GET", ROOT, status=HTTPStatus.NOT_FOUND)


@pytest.mark.parametrize("name", ["%20", "a%E2%80%A8b", "x" * 129])
async def test_an_agents_id_that_breaks_a_rule_is_refused(agent: Agent, name: str) -> None:
    assert problem.names(await agent.client.put(f"/v1/agents/{name}", json={}), "agent_id")
