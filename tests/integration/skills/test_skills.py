"""SK1, SK2: skills are stored in versions, found, used, shared between users, and deleted with every copy."""

import asyncio
from http import HTTPStatus

from tests.agent import Agent
from tests.conftest import Gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.skills.conftest import BREAD, URL, found_names, get, import_zip, load, new_scope, put
from tests.second_gateway import beside
from tests.skill_archives import skill_text, zip_of
from tests.state import StateInspector


async def test_a_skill_is_read_as_it_was_stored(agent: Agent) -> None:
    scope = new_scope()
    stored = await put(agent, "bake-bread", see_also=["mill-flour"], **scope)
    assert {name: stored[name] for name in BREAD} == BREAD
    assert (stored["see_also"], stored["updated_at"], stored["last_used_at"]) == (["mill-flour"], None, None)
    assert await get(agent, "bake-bread", **scope) == stored
    [listed] = (await agent.request("GET", URL, params=scope))["results"]
    assert "content" not in listed
    assert listed["name"] == "bake-bread"


async def test_a_save_keeps_what_it_leaves_out(agent: Agent) -> None:
    scope = new_scope()
    await put(agent, "bake-bread", see_also=["mill-flour"], **scope)
    await load(agent, "bake-bread", **scope)
    used = (await get(agent, "bake-bread", **scope))["last_used_at"]
    assert used is not None
    body = {"content": "Another way.", **scope}
    saved = await agent.request("PUT", f"{URL}/bake-bread", json=body)
    assert (saved["content"], saved["see_also"]) == ("Another way.", ["mill-flour"])
    assert (saved["last_used_at"], saved["summary"]) == (used, BREAD["summary"])
    assert saved["updated_at"] is not None


async def test_a_summary_that_nobody_gave_is_the_beginning_of_the_content(agent: Agent) -> None:
    scope = new_scope()
    words = " ".join(f"w{n}" for n in range(20))
    body = {"content": f"# \n\n## {words}\n\nmore", **scope}
    first = await agent.request("PUT", f"{URL}/s", json=body)
    assert first["summary"] == " ".join(words.split()[:15])
    assert first["summary_origin"] == "content"
    second = await agent.request("PUT", f"{URL}/s", json=body | {"content": "Anew."})
    assert second["summary"] == "Anew."


async def test_each_write_is_a_version_and_the_newest_are_kept(agent: Agent) -> None:
    scope = new_scope()
    for number in range(5):
        await put(agent, "bake-bread", content=f"Way {number}.", **scope)
    path = f"{URL}/bake-bread/versions"
    first = await agent.request("GET", path, params={**scope, "limit": "2"})
    rest = await agent.request("GET", path, params={**scope, "cursor": first["next_cursor"]})
    contents = [version["content"] for version in [*first["results"], *rest["results"]]]
    assert contents == ["Way 4.", "Way 3.", "Way 2."]


async def test_a_condition_in_the_headers_is_checked(agent: Agent) -> None:
    scope = new_scope()
    stored = await put(agent, "bake-bread", **scope)
    path, body = f"{URL}/bake-bread", BREAD | scope
    stale, current = {"if-match": '"1"'}, {"if-match": f'"{stored["version"]}"'}
    refused = await agent.client.put(path, json=body, headers=stale)
    assert refused.status_code == HTTPStatus.PRECONDITION_FAILED
    assert (await agent.client.delete(path, params=scope, headers=stale)).status_code == 412
    assert (await agent.client.put(path, json=body, headers=current)).status_code == HTTPStatus.OK


async def test_writers_at_once_store_one_skill_with_a_version_each(agent: Agent) -> None:
    scope = new_scope()
    await asyncio.gather(*(put(agent, "bake-bread", content=f"Way {n}.", **scope) for n in range(3)))
    listing = await agent.request("GET", URL, params=scope)
    assert len(listing["results"]) == 1
    versions = await agent.request("GET", f"{URL}/bake-bread/versions", params=scope)
    assert {version["content"] for version in versions["results"]} == {"Way 0.", "Way 1.", "Way 2."}


async def test_search_finds_names_summaries_and_descriptions_and_not_contents(agent: Agent) -> None:
    scope = new_scope()
    await put(agent, "bake-bread", content="marmalade", **scope)
    await put(agent, "mill-flour", summary="Grinding corn.", **scope)
    text = skill_text("brew-beer", "w " * 20 + "hops")
    await import_zip(agent, zip_of({"SKILL.md": text}), **scope)
    assert await found_names(agent, "bread", **scope) == ["bake-bread"]
    assert await found_names(agent, "mill", **scope) == ["mill-flour"]
    assert await found_names(agent, "corn", **scope) == ["mill-flour"]
    assert await found_names(agent, "hops", **scope) == ["brew-beer"]
    assert await found_names(agent, "marmalade", **scope) == []


async def test_a_replaced_summary_is_found_no_longer(agent: Agent) -> None:
    scope = new_scope()
    await put(agent, "bake-bread", summary="marmalade", **scope)
    await put(agent, "bake-bread", summary="quinces", **scope)
    assert await found_names(agent, "marmalade", **scope) == []
    assert await found_names(agent, "quinces", **scope) == ["bake-bread"]


async def test_a_user_sees_the_agents_skills_and_their_own_before_these(agent: Agent) -> None:
    scope = new_scope()
    common = {"agent_id": scope["agent_id"]}
    await put(agent, "bake-bread", content="The agent's way.", **common)
    await put(agent, "mill-flour", **common)
    await put(agent, "bake-bread", content="Ada's way.", **scope)
    bob = scope | {"user_id": "bob"}
    assert (await get(agent, "bake-bread", **scope))["content"] == "Ada's way."
    assert (await get(agent, "bake-bread", **bob))["content"] == "The agent's way."
    assert (await get(agent, "bake-bread", **common))["content"] == "The agent's way."
    found = await agent.request("POST", f"{URL}/search", json={"query": "bake bread", **scope})
    own = [skill["user_id"] for skill in found["results"] if skill["name"] == "bake-bread"]
    assert own == ["ada"], "the own one hides the agent's"


async def test_a_load_is_a_use_in_its_session_until_that_is_deleted(
    agent: Agent, inspector: StateInspector
) -> None:
    scope = new_scope()
    await put(agent, "bake-bread", **scope)
    session = await agent.session(**scope)
    loaded = await load(agent, "bake-bread", session=session, **scope)
    assert "Knead the dough." in loaded["content"]
    statement = "SELECT used_by FROM skill_use WHERE tenant = $1 AND session_id = $2"
    uses = await inspector.postgres.fetch(statement, agent.tenant, session)
    assert [row["used_by"] for row in uses] == ["caller"]
    await agent.request("DELETE", f"/v1/sessions/{session}")
    assert await inspector.postgres.fetch(statement, agent.tenant, session) == []


async def test_to_read_a_skill_is_no_use_and_a_key_that_only_reads_leaves_no_trace(
    gateway: Gateway, agent: Agent, inspector: StateInspector
) -> None:
    scope = new_scope()
    await put(agent, "bake-bread", agent_id=scope["agent_id"])
    await get(agent, "bake-bread", **scope)
    uses = "SELECT count(*) FROM skill_use u JOIN skill s ON s.id = u.skill_id WHERE s.agent_id = $1"
    async with await gateway.new_client(rights={"read"}, **scope) as client:
        reader = Agent(client, agent.tenant)
        await get(reader, "bake-bread")
        for path in ("bake-bread/versions", "bake-bread/export"):
            assert (await client.get(f"{URL}/{path}")).status_code == HTTPStatus.OK
        assert "Knead the dough." in (await load(reader, "bake-bread"))["content"]
    assert await inspector.postgres.fetchval(uses, scope["agent_id"]) == 0
    assert (await get(agent, "bake-bread", **scope))["last_used_at"] is None
    async with await gateway.new_client(**scope) as client:
        await get(Agent(client, agent.tenant), "bake-bread")
        assert await inspector.postgres.fetchval(uses, scope["agent_id"]) == 0
        await load(Agent(client, agent.tenant), "bake-bread")
    assert await inspector.postgres.fetchval(uses, scope["agent_id"]) == 1
    assert (await get(agent, "bake-bread", **scope))["last_used_at"] is not None


async def test_one_skill_too_many_is_refused_and_an_existing_one_can_be_replaced(
    gateway: Gateway,
) -> None:
    scope = new_scope()
    assert gateway.resources.settings.skill_max_per_scope == 500
    async with beside(gateway, skill_max_per_scope=20) as agent:
        names = [f"s{n}" for n in range(20)]
        await import_zip(agent, zip_of({f"{name}/SKILL.md": skill_text(name) for name in names}), **scope)
        refused = await agent.client.put(f"{URL}/one-more", json=BREAD | scope)
        assert (refused.status_code, "20" in refused.text) == (HTTPStatus.CONFLICT, True), refused.text
        await put(agent, "s0", **scope)


async def test_a_deleted_skill_leaves_no_copy(
    gateway: Gateway, agent: Agent, inspector: StateInspector
) -> None:
    scope, word = new_scope(), "persimmonia"
    text = skill_text("bake-bread", f"How {word} is baked.", word)
    await import_zip(agent, zip_of({"SKILL.md": text, "a.txt": word}), **scope)
    await put(agent, "bake-bread", content=f"{word} anew", summary=f"{word} now", **scope)
    session = await agent.session(**scope)
    shown = await agent.context(session, f"how is {word} baked?", idempotency_key="k")
    assert word in str(shown["blocks"])
    turn = "SELECT recalled_lines::text FROM turn WHERE tenant = $1 AND session_id = $2"
    assert word in (await inspector.postgres.fetchval(turn, agent.tenant, session))
    await agent.request("DELETE", f"{URL}/bake-bread", params=scope)
    assert (await inspector.postgres.fetchval(turn, agent.tenant, session)) == "[]"
    left = await records_with(inspector, gateway, word)
    assert not [name for name in left if name.startswith(("skill", "idempotent"))]
    repeated = await agent.request("DELETE", f"{URL}/bake-bread", params=scope)
    assert repeated == {"name": "bake-bread", "deleted": False}


async def test_a_user_is_erased_with_their_skills_and_the_agents_stay(agent: Agent) -> None:
    scope = new_scope() | {"user_id": "erasable"}
    common = {"agent_id": scope["agent_id"]}
    await import_zip(
        agent, zip_of({"bake-bread/SKILL.md": skill_text("bake-bread"), "bake-bread/a": "x"}), **scope
    )
    await put(agent, "mill-flour", **common)
    receipt = await agent.request("DELETE", "/v1/users/erasable")
    assert (receipt["erased"]["skills"], receipt["erased"]["skill_files"]) == (1, 1)
    await get(agent, "bake-bread", status=HTTPStatus.NOT_FOUND, **scope)
    await get(agent, "mill-flour", **scope)
