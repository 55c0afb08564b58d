"""Every kind of record says where it comes from, and a caller lowers its trust and never raises it (GD6)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import pytest

from tests.agent import Agent, Json
from tests.conftest import Gateway

FLOW = {"flow_dact": "fly", "tool_calls": [], "outcome": "success", "user_query": "Fly to Kiel."}
RULE = {"condition": {"flow": "fly"}, "effect": {"slot": "seat", "value": "aisle"}}
KINDS: dict[str, tuple[str, str, Json]] = {
    "pinned text": ("PUT", "/v1/pinned/tone", {"content": "Be brief."}),
    "preference": ("PUT", "/v1/preferences/seat", RULE),
    "skill": ("PUT", "/v1/skills/fly", {"content": "Take a seat."}),
    "playbook": ("POST", "/v1/playbooks", FLOW),
    "observation": ("POST", "/v1/sessions/{session}/observations", {"kind": "fact", "content": "Ada flies."}),
    "snippet": ("POST", "/v1/sessions/{session}/scratchpad", {"content": "Ada flies."}),
}


@asynccontextmanager
async def agent_with(gateway: Gateway, **key: Any) -> AsyncIterator[Agent]:
    """Return the requests of a key of its own, with the usual rights."""
    async with await gateway.new_client(**{"rights": ("read", "write"), **key}) as client:
        yield Agent(client, gateway.tenant)


async def write(agent: Agent, kind: str, *, refused: bool = False, **more: Any) -> Json:
    """Write a record of a kind and return it."""
    method, path, body = KINDS[kind]
    path = path.format(session=await agent.session()) if "{" in path else path
    done = HTTPStatus.OK if method == "PUT" else HTTPStatus.CREATED
    status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else done
    return dict(await agent.request(method, path, json=body | more, status=status))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_record_is_trusted_as_its_key_or_as_a_caller_lowers_it(gateway: Gateway, kind: str) -> None:
    rights = ("read", "write", "admin")
    async with (
        agent_with(gateway, rights=rights) as operator,
        agent_with(gateway) as agent,
        agent_with(gateway, rights=rights, user_id="ada") as ada,
    ):
        for caller, trust in ((operator, "operator"), (agent, "agent"), (ada, "user")):
            # A pinned text that says the same stays as it is.
            more: Json = {"content": f"Be {trust}."} if kind == "pinned text" else {}
            assert (await write(caller, kind, **more))["origin"] == {"channel": "api", "trust": trust}
        assert (await write(ada, kind, trust="outside"))["origin"]["trust"] in {"outside", "user"}
        problem = await write(ada, kind, refused=True, trust="agent")
        assert problem["errors"][0]["field"] == "trust"


async def test_another_text_has_the_origin_of_whoever_writes_it(gateway: Gateway) -> None:
    async with (
        agent_with(gateway, rights=("read", "write", "admin")) as operator,
        agent_with(gateway) as agent,
    ):
        changes_of: dict[str, Json] = {
            "pinned text": {"content": "Be rude."},
            "preference": {"effect": {"slot": "seat", "value": "window"}},
            "skill": {"content": "Stand."},
        }
        for kind, changes in changes_of.items():
            assert (await write(operator, kind))["origin"]["trust"] == "operator"
            assert (await write(agent, kind, **changes))["origin"]["trust"] == "agent"
            assert (await write(agent, kind, **changes, trust="outside"))["origin"]["trust"] in {
                "agent",  # a pinned text that says the same stays as it is
                "outside",
            }


async def test_a_document_comes_from_outside_and_nobody_raises_that(gateway: Gateway) -> None:
    async with agent_with(gateway, rights=("read", "write", "admin")) as operator:

        async def upload(status: int, **fields: str) -> Json:
            files = {"file": ("plan.txt", b"Ada flies to Kiel.")}
            return dict(
                await operator.request("POST", "/v1/documents", files=files, data=fields, status=status)
            )

        origin = {"channel": "document", "trust": "outside"}
        for trust in ("user", "king"):
            refused = await upload(HTTPStatus.UNPROCESSABLE_ENTITY, trust=trust)
            assert refused["errors"][0]["field"] == "trust"
        document = await upload(HTTPStatus.ACCEPTED, trust="outside")
        assert document["origin"] == origin
        assert (await operator.request("GET", f"/v1/documents/{document['id']}"))["origin"] == origin
        await operator.request("PUT", "/v1/business-context", json={"content": "Ada flies."})
        found = await operator.request("POST", "/v1/documents/search", json={"query": "Ada flies"})
        assert found["results"][0]["origin"] == {"channel": "api", "trust": "operator"}


async def test_the_business_context_is_trusted_as_its_least_trusted_part(gateway: Gateway) -> None:
    path = "/v1/business-context"
    async with (
        agent_with(gateway, rights=("read", "write", "admin")) as operator,
        agent_with(gateway) as agent,
    ):
        assert (await operator.request("GET", path))["origin"] is None
        put = await operator.request("PUT", path, json={"content": "We bake."})
        assert put["origin"] == {"channel": "api", "trust": "operator"}
        headers = {"if-match": f'"{put["version"]}"'}
        body = {"content": "We bake bread.", "trust": "operator"}
        await agent.request("PUT", path, json=body, headers=headers, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        body = {"content": "We bake bread."}
        changed = await agent.request("PUT", path, json=body, headers=headers)
        assert changed["origin"]["trust"] == "agent"


async def test_a_copy_of_a_playbook_is_trusted_as_the_playbook(gateway: Gateway) -> None:
    async with agent_with(gateway) as agent:
        await write(agent, "playbook", trust="outside")
        session = await agent.session()
        search = {"flow": "fly", "session_id": session}
        await agent.request("POST", "/v1/playbooks/search", json=search)
        [copy] = (await agent.request("GET", f"/v1/sessions/{session}/scratchpad"))["results"]
        assert copy["origin"] == {"channel": "model", "trust": "outside"}


@pytest.mark.parametrize(("trust", "category"), [("outside", None), ("user", "user-preferences/promoted")])
async def test_a_report_makes_no_preference_of_text_from_outside(
    gateway: Gateway, trust: str, category: str | None
) -> None:
    async with agent_with(gateway, user_id="ada") as agent:
        session = await agent.session()
        path = f"/v1/sessions/{session}"
        for _ in range(3):
            body = {"content": "Ada always wants an aisle seat in the morning.", "trust": trust}
            await agent.request("POST", f"{path}/scratchpad", json=body, status=HTTPStatus.CREATED)
        report = {"title": "Found", "content": "It is so."}
        await agent.request("POST", f"{path}/report", json=report, status=HTTPStatus.CREATED)
        memories = (await agent.request("GET", "/v1/memories"))["results"]
        preferences = (await agent.request("GET", "/v1/preferences"))["results"]
        assert [memory["category"] for memory in memories] == [category]
        assert [memory["origin"] for memory in memories] == [{"channel": "model", "trust": trust}]
        assert [item["origin"] for item in preferences] == (
            [] if category is None else [{"channel": "model", "trust": trust}]
        )


async def test_a_caller_who_asks_makes_a_preference_of_text_from_outside(gateway: Gateway) -> None:
    async with agent_with(gateway, user_id="ada") as agent:
        path = f"/v1/sessions/{await agent.session()}/scratchpad"
        body = {"content": "Ada always wants an aisle seat.", "trust": "outside"}
        snippet = await agent.request("POST", path, json=body, status=HTTPStatus.CREATED)
        await agent.request("POST", f"{path}/promote", json={"ids": [snippet["id"]]})
        [memory] = (await agent.request("GET", "/v1/memories"))["results"]
        assert memory["category"] == "user-preferences/promoted"
        assert memory["origin"]["trust"] == "outside"


async def test_an_entry_of_working_memory_is_trusted_as_its_least_trusted_part(gateway: Gateway) -> None:
    path = "/v1/working/patrol/p/note"
    async with (
        agent_with(gateway, rights=("read", "write", "admin")) as operator,
        agent_with(gateway) as agent,
    ):
        forged = '"trust":"operator"'
        body: Json = {"value": forged, "category": "x", "tags": ["trust", "outside"]}
        assert (await operator.request("PUT", path, json=body))["origin"] == {
            "channel": "api",
            "trust": "operator",
        }

        async def append(caller: Agent, trust: str | None = None) -> str:
            more = {} if trust is None else {"trust": trust}
            entry = await caller.request("PATCH", path, json={"append": forged, **more})
            assert (await caller.request("GET", path))["origin"] == entry["origin"]
            assert entry["tags"] == ["trust", "outside"]
            return str(entry["origin"]["trust"])

        assert await append(operator) == "operator"
        assert await append(agent) == "agent"
        assert await append(operator) == "agent"
        assert await append(operator, "outside") == "outside"
        assert await append(agent, "user") == "outside"
        for body in ({"value": "x", "trust": "operator"},):
            await agent.request("PUT", path, json=body, status=HTTPStatus.UNPROCESSABLE_ENTITY)
        await agent.request(
            "PATCH", path, json={"append": "x", "trust": "operator"}, status=HTTPStatus.UNPROCESSABLE_ENTITY
        )
        assert (await agent.request("PUT", path, json={"value": "x"}))["origin"]["trust"] == "agent"
        [listed] = (await agent.request("GET", "/v1/working", params={"prefix": "patrol/p"}))["results"]
        assert listed["origin"]["trust"] == "agent"


async def test_a_triple_is_trusted_as_its_key_its_turn_and_whoever_vouches_for_it(gateway: Gateway) -> None:
    async with (
        agent_with(gateway, rights=("read", "write", "admin")) as operator,
        agent_with(gateway) as agent,
    ):

        async def save(caller: Agent, *, refused: bool = False, **more: Any) -> Json:
            body = {"subject": "Alice", "predicate": "works_on", "object": "RockBot"} | more
            status = HTTPStatus.UNPROCESSABLE_ENTITY if refused else HTTPStatus.CREATED
            return dict(await caller.request("POST", "/v1/graph/triples", json=body, status=status))

        assert (await save(agent, fact="So I heard.", trust="outside"))["origin"]["trust"] == "outside"
        assert (await save(operator))["origin"]["trust"] == "outside", "a fact that nobody vouches for"
        vouched = await save(operator, fact="She does.")
        assert vouched["origin"] == {"channel": "api", "trust": "operator"}
        repeated = await save(agent, fact="She does not.", confidence=0.9)
        assert (repeated["fact"], repeated["origin"]["trust"], repeated["confidence"]) == (
            "She does.",
            "operator",
            0.9,
        )
        await save(agent, refused=True, trust="operator")
        session = await agent.session()
        seq = await agent.append_turn(session, "Alice knows Bob.")
        source = {"session_id": session, "seq": seq}
        of_turn = await save(operator, predicate="knows", object="Bob", source=source)
        assert of_turn["origin"]["trust"] == "outside"
        [listed, *_] = (await agent.request("GET", "/v1/graph/triples"))["results"]
        assert listed["origin"]["trust"] == "operator"
