"""Past turns, and the order in which blocks are shortened to fit a token budget."""

from typing import Any

import pytest

from tests.agent import Agent, Json, count_occurrences, find_block, random_word
from tests.journey.large_value import LARGE

SHORTENING_ORDER = ["past_turns", "episodes", "subagents", "patrol", "working_memory", "turns", "recalled"]
MESSAGE = "What did we say about the lighthouse?"


async def test_cx6_turns_of_other_sessions_are_recalled_if_enabled(agent_with_model: Agent) -> None:
    secret = random_word()
    earlier, current = await agent_with_model.session(), await agent_with_model.session()
    await agent_with_model.append_turn(earlier, f"The lighthouse keeper is {secret}.", role="user")
    context = await agent_with_model.context(current, MESSAGE)
    past = find_block(context, "past_turns")
    assert past is not None
    assert past["text"].splitlines()[0] == "Related past conversation:"
    assert past["ids"] == [f"{earlier}#1"]
    assert count_occurrences(context, secret) == 1


async def test_cx6_the_current_session_and_other_users_are_left_out(agent_with_model: Agent) -> None:
    own = await agent_with_model.session(user_id="ada")
    other = await agent_with_model.session(user_id="bob")
    await agent_with_model.append_turn(own, "The lighthouse is white.")
    await agent_with_model.append_turn(other, "The lighthouse is red.")
    assert find_block(await agent_with_model.context(own, MESSAGE), "past_turns") is None


async def test_cx6_past_turns_are_off_by_default(agent: Agent) -> None:
    await agent.append_turn(await agent.session(), "The lighthouse is white.")
    assert find_block(await agent.context(await agent.session(), MESSAGE), "past_turns") is None


@pytest.fixture
async def full_session(agent_with_model: Agent) -> str:
    """Make a session with a block of every kind in its context."""
    await agent_with_model.append_turn(
        await agent_with_model.session(), "The lighthouse is white, we said.", role="user"
    )
    session = await agent_with_model.session()
    for role in ("user", "assistant") * 3:
        await agent_with_model.append_turn(session, f"Some older words, {random_word()}.", role=role)
    await agent_with_model.save("The lighthouse was painted.", category="episodic/task", enrich=False)
    for name in ("one", "two"):
        await agent_with_model.save(f"The lighthouse has {name} lamp.", enrich=False)
        await agent_with_model.put(f"session/{session}/{name}", "1")
        await agent_with_model.put(f"patrol/coast/{name}", "2")
        await agent_with_model.put(f"subagent/scout/{name}", LARGE.format(secret="lighthouse"))
    return session


async def test_cx1_blocks_are_shortened_in_order_to_fit_a_budget_and_the_message_never_is(
    agent_with_model: Agent, full_session: str
) -> None:
    async def build(budget: int) -> Json:
        options: dict[str, Any] = {
            "max_tokens": budget,
            "record_turn": False,
            "explain": True,
            "system": "Be brief.",
        }
        return await agent_with_model.context(full_session, MESSAGE, **options)

    full_context = await build(100_000)
    assert {shown_block["kind"] for shown_block in full_context["blocks"]} == {*SHORTENING_ORDER} - {"turns"}
    assert full_context["explain"]["shortened"] == []
    shortened_counts: set[int] = set()
    for budget in range(full_context["tokens"], 0, -max(1, full_context["tokens"] // 60)):
        context = await build(budget)
        shortened = context["explain"]["shortened"]
        shortened_counts.add(len(shortened))
        assert shortened == SHORTENING_ORDER[: len(shortened)], "a block was shortened before an earlier one"
        assert context["tokens"] <= budget or len(context["messages"]) == 2, (
            "over a budget that could be kept"
        )
        assert _absent_kinds(context) >= set(shortened[:-1]), "an earlier block is not yet empty"
        assert context["messages"][0] == {"role": "system", "content": "Be brief."}
        assert context["messages"][-1] == {"role": "user", "content": MESSAGE}
    assert shortened_counts == set(range(len(SHORTENING_ORDER) + 1))


def _absent_kinds(context: Json) -> set[str]:
    """Return the kinds of which a context has no block."""
    present = {shown_block["kind"] for shown_block in context["blocks"]}
    if any("Some older words" in message["content"] for message in context["messages"]):
        present.add("turns")
    return set(SHORTENING_ORDER) - present
