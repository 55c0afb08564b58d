"""Past turns, and what gives way when a context must be short."""

import pytest

from tests.journey.agent import Agent, Json, block, shown, word
from tests.journey.test_working_memory import LARGE

GIVES_WAY = ["past_turns", "episodes", "subagents", "patrol", "working_memory", "turns", "recalled"]
MESSAGE = "What did we say about the lighthouse?"


async def test_cx6_turns_of_other_sessions_come_back_when_that_is_switched_on(agent_with_model: Agent) -> None:
    secret = word()
    before, now = await agent_with_model.session(), await agent_with_model.session()
    await agent_with_model.say(before, f"The lighthouse keeper is {secret}.", role="user")
    context = await agent_with_model.context(now, MESSAGE)
    past = block(context, "past_turns")
    assert past is not None
    assert past["text"].splitlines()[0] == "Related past conversation:"
    assert past["ids"] == [f"{before}#1"]
    assert shown(context, secret) == 1


async def test_cx6_the_running_session_and_other_users_are_left_out(agent_with_model: Agent) -> None:
    mine, theirs = await agent_with_model.session(user_id="ada"), await agent_with_model.session(user_id="bob")
    await agent_with_model.say(mine, "The lighthouse is white.")
    await agent_with_model.say(theirs, "The lighthouse is red.")
    assert block(await agent_with_model.context(mine, MESSAGE), "past_turns") is None


async def test_cx6_past_turns_are_off_unless_switched_on(agent: Agent) -> None:
    await agent.say(await agent.session(), "The lighthouse is white.")
    assert block(await agent.context(await agent.session(), MESSAGE), "past_turns") is None


@pytest.fixture
async def full(agent_with_model: Agent) -> str:
    """A session with something of every kind in its context."""
    await agent_with_model.say(await agent_with_model.session(), "The lighthouse is white, we said.", role="user")
    session = await agent_with_model.session()
    for role in ("user", "assistant") * 3:
        await agent_with_model.say(session, f"Some older words, {word()}.", role=role)
    await agent_with_model.save("The lighthouse was painted.", category="episodic/task", enrich=False)
    for name in ("one", "two"):
        await agent_with_model.save(f"The lighthouse has {name} lamp.", enrich=False)
        await agent_with_model.put(f"session/{session}/{name}", "1")
        await agent_with_model.put(f"patrol/coast/{name}", "2")
        await agent_with_model.put(f"subagent/scout/{name}", LARGE.format(secret="lighthouse"))
    return session


async def test_cx1_under_a_budget_blocks_give_way_in_their_order_and_the_message_never(
    agent_with_model: Agent, full: str
) -> None:
    async def asked(budget: int) -> Json:
        more = {"max_tokens": budget, "record_turn": False, "explain": True, "system": "Be brief."}
        return await agent_with_model.context(full, MESSAGE, **more)

    whole = await asked(100_000)
    assert {one["kind"] for one in whole["blocks"]} == {*GIVES_WAY} - {"turns"}
    assert whole["explain"]["shortened"] == []
    seen: set[int] = set()
    for budget in range(whole["tokens"], 0, -max(1, whole["tokens"] // 60)):
        context = await asked(budget)
        cut = context["explain"]["shortened"]
        seen.add(len(cut))
        assert cut == GIVES_WAY[: len(cut)], "nothing gives way before what comes earlier is cut"
        assert context["tokens"] <= budget or len(context["messages"]) == 2, "within the budget if it can be"
        assert _gone(context) >= set(cut[:-1]), "nothing gives way while anything earlier is left"
        assert context["messages"][0] == {"role": "system", "content": "Be brief."}
        assert context["messages"][-1] == {"role": "user", "content": MESSAGE}
    assert seen == set(range(len(GIVES_WAY) + 1))


def _gone(context: Json) -> set[str]:
    """Return the kinds that a context has nothing of."""
    left = {one["kind"] for one in context["blocks"]}
    if any("Some older words" in message["content"] for message in context["messages"]):
        left.add("turns")
    return set(GIVES_WAY) - left
