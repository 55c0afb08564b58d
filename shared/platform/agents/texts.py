"""An agent's texts: a list that it adds to, and replaces or clears as a whole."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.agents import queries
from shared.platform.agents.agent import AgentText, TextDraft
from shared.platform.agents.profile import agent_scope
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.idempotency.queries import IdempotencyKey, idempotent
from shared.platform.resources import Resources


async def push(
    resources: Resources, caller: Caller, agent_id: str, draft: TextDraft, key: IdempotencyKey | None = None
) -> dict[str, Any]:
    """Add a checked text and return it as JSON."""
    whose = agent_scope(caller, agent_id)
    async with (
        resources.postgres.for_tenant(whose.tenant) as connection,
        idempotent(connection, whose.tenant, key) as request,
    ):
        if request.stored is not None:
            return dict(request.stored)
        root = await queries.lock(connection, whose.tenant, whose.agent_id)
        (added,) = await queries.add_texts(connection, root, [draft])
        answer = added.model_dump(mode="json")
        await request.store(answer, record_ids=[added.id])
    return answer


async def replace(
    resources: Resources, caller: Caller, agent_id: str, drafts: Sequence[TextDraft]
) -> list[AgentText]:
    """Put checked texts in the place of all that there are."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        root = await queries.lock(connection, whose.tenant, whose.agent_id)
        gone = await queries.remove_texts(connection, whose.tenant, whose.agent_id)
        await idempotency_queries.erase_responses(connection, whose.tenant, gone)
        return await queries.add_texts(connection, root, drafts)


async def remove(resources: Resources, caller: Caller, agent_id: str, text_id: str | None = None) -> int:
    """Delete one text, or all of them; return how many there were."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        gone = await queries.remove_texts(connection, whose.tenant, whose.agent_id, text_id)
        await idempotency_queries.erase_responses(connection, whose.tenant, gone)
    return len(gone)


async def page(
    resources: Resources, caller: Caller, agent_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[AgentText]:
    """Return texts in the order they came; `after` is the place of the last one seen."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        return await queries.texts(connection, whose.tenant, whose.agent_id, limit, after)


async def get(resources: Resources, caller: Caller, agent_id: str, text_id: str) -> AgentText:
    """Return one text; raise errors.NotFound when the agent has no such one."""
    whose = agent_scope(caller, agent_id)
    async with resources.postgres.for_tenant(whose.tenant) as connection:
        found = await queries.text(connection, whose.tenant, whose.agent_id, text_id)
    if found is None:
        raise errors.NotFound(f"text not found: {text_id}")
    return found
