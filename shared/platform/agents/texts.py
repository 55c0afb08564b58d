"""An agent's texts: a list that a caller adds to, and replaces or clears as a whole."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.agents import queries
from shared.platform.agents.agent import AgentText, TextDraft
from shared.platform.agents.profile import agent_scope
from shared.platform.auth.rights import Action
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources


async def push(
    resources: Resources, caller: Caller, agent_id: str, draft: TextDraft, key: IdempotencyKey | None = None
) -> dict[str, Any]:
    """Add a validated text and return it as JSON."""
    scope = agent_scope(caller, agent_id, Action.WRITE)
    async with resources.postgres.for_tenant(scope.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return dict(request.stored)
        profile = await queries.lock(tx, scope.agent_id)
        (text,) = await queries.add_texts(tx, profile, [draft])
        response = text.model_dump(mode="json")
        await request.store(response, record_ids=[text.id])
    return response


async def replace(
    resources: Resources, caller: Caller, agent_id: str, drafts: Sequence[TextDraft]
) -> list[AgentText]:
    """Replace all texts of an agent by validated ones, and return these."""
    scope = agent_scope(caller, agent_id, Action.WRITE)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        profile = await queries.lock(tx, scope.agent_id)
        deleted_ids = await queries.remove_texts(tx, scope.agent_id)
        await idempotency_queries.erase_responses(tx, deleted_ids)
        return await queries.add_texts(tx, profile, drafts)


async def remove(resources: Resources, caller: Caller, agent_id: str, text_id: str | None = None) -> int:
    """Delete one text, or all of them, and return how many were deleted."""
    scope = agent_scope(caller, agent_id, Action.WRITE)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        deleted_ids = await queries.remove_texts(tx, scope.agent_id, text_id)
        await idempotency_queries.erase_responses(tx, deleted_ids)
    return len(deleted_ids)


async def page(
    resources: Resources, caller: Caller, agent_id: str, limit: int, after: tuple[datetime, str] | None
) -> list[AgentText]:
    """Return texts in the order they were added; `after` is (created_at, id) of the last text seen."""
    scope = agent_scope(caller, agent_id, Action.READ)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        return await queries.list_texts(tx, scope.agent_id, limit, after)


async def get(resources: Resources, caller: Caller, agent_id: str, text_id: str) -> AgentText:
    """Return one text. Raise errors.NotFound when the agent has no text of this id."""
    scope = agent_scope(caller, agent_id, Action.READ)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        text = await queries.get_text(tx, scope.agent_id, text_id)
    if text is None:
        raise errors.NotFound(f"text not found: {text_id}")
    return text
