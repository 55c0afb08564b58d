"""MM4: which preferences apply is found by flow, by situation and by relations, and every answer says why."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from shared.foundation import config
from tests.agent import Agent, Json
from tests.conftest import Gateway, running_gateway
from tests.draining import drain, make_due
from tests.integration.preferences.conftest import put, resolve, rule, slots
from tests.standins.behaviours import Vectors
from tests.standins.models import ModelServer
from tests.standins.wire import Call, Wire

BOARD = "a report is written for the board"


async def test_what_is_found_by_flow_and_by_situation_says_why(agent: Agent, scope: Json) -> None:
    await put(agent, "by-flow", rule("a", 1, flow="report"), **scope)
    await put(agent, "by-situation", rule("b", 2, description=BOARD), **scope)
    await put(agent, "by-both", rule("c", 3, flow="report", description=BOARD), **scope)
    await put(agent, "other-flow", rule("d", 4, flow="analyze", description=BOARD), **scope)
    answer = await resolve(agent, flow="report", situation="The board waits for its report.", **scope)
    assert {item["key"]: item["because"] for item in answer["applies"]} == {
        "by-both": f"its flow is 'report', and the situation is like '{BOARD}'",
        "by-flow": "its flow is 'report'",
        "by-situation": f"the situation is like '{BOARD}'",
    }
    assert [item["key"] for item in answer["applies"]] == ["by-both", "by-flow", "by-situation"]
    assert (answer["conflicts"], answer["stages"], answer["degraded"]) == ([], ["bm25", "flow"], [])


async def test_a_rule_that_names_both_needs_both_as_far_as_they_are_given(agent: Agent, scope: Json) -> None:
    await put(agent, "both", rule("a", 1, flow="report", description=BOARD), **scope)
    assert await slots(agent, flow="report", **scope) == {"a": 1}
    assert await slots(agent, situation="a report for the board", **scope) == {"a": 1}
    assert await slots(agent, flow="report", situation="Two trains to Paris.", **scope) == {}
    assert await slots(agent, flow="travel", situation="a report for the board", **scope) == {}


async def test_relations_reach_two_links_far(agent: Agent, scope: Json) -> None:
    for number in range(4):
        related = (f"p{number + 1}", "p0", "nowhere")
        await put(agent, f"p{number}", rule(f"s{number}", number, related, flow=f"f{number}"), **scope)
    answer = await resolve(agent, flow="f0", **scope)
    assert {item["key"]: item["because"] for item in answer["applies"]} == {
        "p0": "its flow is 'f0'",
        "p1": "it is related to 'p0': its flow is 'f0'",
        "p2": "it is related to 'p1': it is related to 'p0': its flow is 'f0'",
    }
    assert answer["stages"] == ["flow", "related"]


async def test_a_conflict_is_settled_and_reported(agent: Agent, scope: Json) -> None:
    await put(agent, "general", rule("depth", "brief", flow="report"), **scope)
    await put(agent, "special", rule("depth", "thorough", flow="report", description=BOARD), **scope)
    await put(agent, "later", rule("depth", "standard", flow="report"), **scope)
    answer = await resolve(agent, flow="report", situation="a report for the board", **scope)
    assert [(item["key"], item["effect"]["value"]) for item in answer["applies"]] == [("special", "thorough")]
    [conflict] = answer["conflicts"]
    assert (conflict["slot"], conflict["prevails"]) == ("depth", "special")
    assert [item["key"] for item in conflict["overruled"]] == ["later", "general"]
    assert all("a flow with a description" in item["because"] for item in conflict["overruled"])


async def test_a_rule_of_which_a_part_was_not_asked_about_gives_way_to_one_that_is_met_whole(
    agent: Agent, scope: Json
) -> None:
    condition = {"flow": "report", "description": BOARD}
    await put(agent, "general", rule("depth", "brief", ("few",), flow="report"), **scope)
    await put(agent, "board", rule("depth", "thorough", ("many",), **condition), **scope)
    await put(agent, "few", rule("pages", 2, flow="other"), **scope)
    await put(agent, "many", rule("pages", 90, flow="other"), **scope)
    answer = await resolve(agent, flow="report", **scope)
    assert {item["key"]: item["effect"]["value"] for item in answer["applies"]} == {
        "general": "brief",
        "few": 2,
    }
    overruled = {conflict["prevails"]: conflict["overruled"] for conflict in answer["conflicts"]}
    [board] = overruled["general"]
    assert (board["key"], "not asked about" in board["because"]) == ("board", True)
    assert [item["key"] for item in overruled["few"]] == ["many"], "as little is known of what it names"
    assert (await slots(agent, situation="a report for the board", **scope))["depth"] == "thorough"


async def test_keys_that_differ_in_case_alone_are_two_rules_that_contradict_each_other(
    agent: Agent, scope: Json
) -> None:
    for value, key in enumerate(("depth", "Depth", "DEPTH")):
        await put(agent, key, rule("depth", value, flow="report"), **scope)
    answer = await resolve(agent, flow="report", **scope)
    assert [item["key"] for item in answer["applies"]] == ["DEPTH"]
    assert [item["key"] for item in answer["conflicts"][0]["overruled"]] == ["Depth", "depth"]


async def test_what_belongs_to_somebody_else_is_no_relation(agent: Agent, scope: Json) -> None:
    await put(agent, "bobs", rule("secret", 1, flow="other"), **scope | {"user_id": "bob"})
    await put(agent, "of-another-agent", rule("secret", 2, flow="other"), agent_id="another", user_id="ada")
    await put(agent, "k", rule("a", 1, ("bobs", "of-another-agent"), flow="report"), **scope)
    assert await slots(agent, flow="report", **scope) == {"a": 1}


async def test_without_the_index_situations_are_compared_in_postgres(
    gateway: Gateway, agent: Agent, scope: Json, unused_url: str
) -> None:
    await put(agent, "board", rule("a", 1, description=BOARD), **scope)
    await put(agent, "train", rule("b", 2, description="a train is booked"), **scope)
    settings = gateway.resources.settings.model_copy(update={"qdrant_url": unused_url})
    async with running_gateway(settings, gateway.tenant) as served:
        answer = await resolve(
            Agent(served.client, served.tenant), situation="a report for the board", **scope
        )
    assert [item["key"] for item in answer["applies"]] == ["board"]
    assert (answer["stages"], answer["degraded"]) == (["postgres"], ["index"])


async def test_a_changed_description_is_found_by_its_new_words_alone(agent: Agent, scope: Json) -> None:
    await put(agent, "k", rule("a", 1, description="a train is booked"), **scope)
    await put(agent, "k", rule("a", 1, description=BOARD), **scope)
    assert await slots(agent, situation="book a train", **scope) == {}
    assert await slots(agent, situation="a report for the board", **scope) == {"a": 1}
    await put(agent, "k", rule("a", 1, flow="report"), **scope)
    assert await slots(agent, situation="a report for the board", **scope) == {}


class _Meanings(Vectors):
    """What mentions a board or directors means nearly the same, and everything else something else."""

    def embed(self, call: Call, wire: Wire) -> list[list[float]]:
        del wire
        return [self._vector(text) for text in call.texts]

    def _vector(self, text: str) -> list[float]:
        near = {"board": [1.0, *[0.0] * 63], "directors": [0.9, 0.43588989, *[0.0] * 62]}
        return next((vector for word, vector in near.items() if word in text), [*[0.0] * 63, 1.0])


@pytest.fixture
async def embedding(
    make_settings: Callable[..., config.Settings], tenant: str, models: ModelServer
) -> AsyncIterator[Gateway]:
    """Serve a gateway with an embedding model and its own index."""
    settings = make_settings(apart=True, embedding_base_url=models.url, embedding_model="m")
    async with running_gateway(settings, tenant) as gateway:
        yield gateway


async def test_with_a_model_a_situation_in_other_words_is_found(
    embedding: Gateway, models: ModelServer, scope: Json
) -> None:
    agent = Agent(embedding.client, embedding.tenant)
    models.embedding_default = _Meanings()
    await put(agent, "board", rule("a", 1, description=BOARD), **scope)
    await make_due(embedding.resources)
    await drain(embedding.resources)
    answer = await resolve(agent, situation="What do the directors get?", **scope)
    assert [item["key"] for item in answer["applies"]] == ["board"]
    assert (answer["stages"], answer["degraded"]) == (["bm25", "dense"], [])
    assert await slots(agent, situation="Who feeds the cat?", **scope) == {}


async def test_the_persona_of_the_example_stands_until_a_user_chooses_another(
    make_settings: Callable[..., config.Settings], tenant: str, scope: Json, repository: Path
) -> None:
    """MM3: types come from the domain file; what is stored is the truth."""
    settings = make_settings(preferences_file=repository / "examples/preferences/analyst.yaml")
    async with running_gateway(settings, tenant) as served:
        agent = Agent(served.client, tenant)
        assert await slots(agent, flow="report", **scope) == {
            "persona": "analyst",
            "depth": "standard",
            "horizon": "quarter",
        }
        assert await slots(agent, flow="travel", situation="a report for a reader", **scope) == {}
        persona = rule("persona", "executive", ("analysis-depth",), flow="report")
        await put(agent, "persona", persona | {"effect": {"slot": "persona", "value": "poet"}}, 422, **scope)
        assert (await agent.request("GET", "/v1/preferences/persona", params=scope))["basis"] == "domain"
        await put(agent, "persona", persona, **scope)
        await put(agent, "analysis-depth", rule("depth", "brief", flow="analyze"), **scope)
        assert await slots(agent, flow="report", **scope) == {"persona": "executive", "depth": "brief"}
        assert await slots(agent, flow="report", agent_id=scope["agent_id"], user_id="bob") == {
            "persona": "analyst",
            "depth": "standard",
            "horizon": "quarter",
        }
        stored = await agent.request("GET", "/v1/preferences/persona", params=scope)
        assert (stored["basis"], stored["effect"]["value"]) == ("explicit", "executive")
        await agent.request("DELETE", "/v1/preferences/persona", params=scope)
        assert (await slots(agent, flow="report", **scope))["persona"] == "analyst"
