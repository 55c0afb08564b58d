"""A text planted in every column that is declared to hold text is gone after a deletion that concerns it."""

from collections.abc import AsyncIterator, Callable

import pytest

from shared.foundation import config
from tests.agent import Agent
from tests.conftest import Gateway, running_gateway
from tests.integration.forgetting.conftest import records_with
from tests.integration.forgetting.planted_rows import AGENT, MEMORY, PLANTED, SESSION, USER, plant
from tests.state import StateInspector

_TABLES_WITH_TEXT = {
    *("memory", "memory_history", "session", "turn", "observation", "feedback_signal", "agent", "agent_text"),
    *("agent_file", "state_key", "state_collection", "transcript_entry", "dream_pass", "charge"),
    *("preference_occurrence", "idempotent_response", "pinned_text", "scratchpad_snippet", "promotion"),
    *("business_context_part", "preference", "playbook"),
    *("skill", "skill_version", "skill_file", "skill_proposal"),
    *("graph_entity", "graph_name", "graph_triple", "dream_graph_change"),
}
_AGENTS = {"agent", "agent_text", "agent_file"}
_PINNED = {"pinned_text"}
_PREFERENCES = {"preference"}
_SKILLS = {"skill", "skill_version", "skill_file"}
_GRAPH = {"graph_entity", "graph_name", "graph_triple", "dream_graph_change"}
# Of the tenant: of no user, agent or session.
_DOCUMENTS = {"document", "document_chunk", "parsed_chunk"}
_MEMORIES = {"memory", "memory_history", "memory_tombstone", "dream_change"}


async def _tables_with_planted_text(inspector: StateInspector, gateway: Gateway) -> set[str]:
    hex_text = PLANTED.encode().hex()
    names = await records_with(inspector, gateway, PLANTED) + await records_with(inspector, gateway, hex_text)
    return {name.split()[0] for name in names}


@pytest.fixture
async def gateway(make_settings: Callable[..., config.Settings], tenant: str) -> AsyncIterator[Gateway]:
    """A gateway with a database of its own: no worker of another test can read the planted rows."""
    async with running_gateway(make_settings(apart=True), tenant) as served:
        yield served


@pytest.mark.parametrize(
    ("path", "stays"),
    [
        (f"/v1/users/{USER}", _AGENTS | _DOCUMENTS),
        (f"/v1/agents/{AGENT}", _DOCUMENTS),
        (
            f"/v1/sessions/{SESSION}",
            _AGENTS | _DOCUMENTS | _MEMORIES | _PINNED | _PREFERENCES | _SKILLS | _GRAPH,
        ),
    ],
)
async def test_no_declared_column_keeps_the_text_of_what_was_deleted(
    agent: Agent, gateway: Gateway, inspector: StateInspector, path: str, stays: set[str]
) -> None:
    await plant(inspector.postgres, gateway.tenant)
    before = await _tables_with_planted_text(inspector, gateway)
    assert before >= _TABLES_WITH_TEXT
    await agent.request("DELETE", path)
    assert await _tables_with_planted_text(inspector, gateway) == stays & before


async def test_every_copy_of_a_memory_is_deleted_with_it(
    agent: Agent, gateway: Gateway, inspector: StateInspector
) -> None:
    await plant(inspector.postgres, gateway.tenant)
    before = await _tables_with_planted_text(inspector, gateway)
    await agent.request("DELETE", f"/v1/memories/{MEMORY}")
    gone = before - await _tables_with_planted_text(inspector, gateway)
    assert gone == {
        *("memory", "memory_history", "preference", "idempotent_response"),
        *("dream_pass", "dream_change"),
    }
    (turn,) = await inspector.postgres.fetch(
        "SELECT recalled_lines::text, recalled_ids FROM turn WHERE tenant = $1", gateway.tenant
    )
    assert (turn["recalled_lines"], turn["recalled_ids"]) == ("[]", [])
