"""Promote snippets because a caller asks for it: at once, and without asking a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.conversation.scratchpad import queries as scratchpad_queries
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.dreams.promotion import queries
from shared.dreams.promotion.carry_out import carry_out, lock_target
from shared.dreams.promotion.examine import Judgements
from shared.dreams.promotion.promotion import Promotion, PromotionTarget, PromotionTrigger, default_target
from shared.foundation import errors, validation
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.memory.business_context import write as business_write
from shared.memory.longterm import save
from shared.platform.auth import rights
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources
from shared.records.transaction import RecordTransaction

MAX_REASON = 1000
JsonObject = dict[str, Any]
_NOT_ASKED = Judgements(otherwise="not judged: a caller asked for the promotion")


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for. Without `ids`, all own notes that were not promoted before are meant.

    Without a `target`, it is as `default_target` says.
    """

    ids: Sequence[str] | None = None
    target: PromotionTarget | None = None
    reason: str | None = None

    def validated(self) -> "Request":
        """Return the request. Raise errors.Invalid if the reason is blank or too long."""
        if self.reason is not None:
            validation.check_text(self.reason, "reason", MAX_REASON)
        return self


async def promote(
    resources: Resources,
    caller: Caller,
    session_id: str,
    request: Request,
    key: IdempotencyKey | None = None,
) -> JsonObject:
    """Promote snippets of a session, and return the promotion as JSON.

    Raises errors.NotFound for a session or snippet that is not there, and errors.Forbidden if a bound key
    is to write business context, which the whole tenant reads.
    """
    async with resources.transaction(caller.tenant) as tx, idempotent(tx, key) as idempotent_request:
        stored: JsonObject | None = idempotent_request.stored
        if stored is not None:
            memory_ids = [result["memory_id"] for result in stored["results"] if result["memory_id"]]
            save.index_repeated(tx, memory_ids)
            return stored
        session = await _lock_session(tx, resources, caller, session_id, request.target)
        promotion = await _promote(tx, resources, caller, session, request)
        await session_queries.renew_expiry(tx, session)
        response = promotion.model_dump(mode="json")
        await idempotent_request.store(response, record_ids=[session.id], user_id=session.user_id)
        return response


async def _lock_session(
    tx: Transaction, resources: Resources, caller: Caller, session_id: str, target: PromotionTarget | None
) -> Session:
    """Lock what a promotion writes: the business context, if that is its target, and then the session."""
    settings = resources.settings
    session = await get_session(tx, settings, caller, session_id)
    await lock_target(tx, target_of(caller, session, target))
    return await get_session(tx, settings, caller, session_id, lock=True)


def target_of(caller: Caller, session: Session, target: PromotionTarget | None) -> PromotionTarget:
    """Return where the snippets of a session go. Raise errors.Forbidden if the key may not write there."""
    chosen = target or default_target(session.scope, is_unbound=rights.is_unbound(caller))
    if chosen is PromotionTarget.BUSINESS_CONTEXT:
        business_write.require_right(caller)
    return chosen


async def _promote(
    tx: RecordTransaction, resources: Resources, caller: Caller, session: Session, request: Request
) -> Promotion:
    snippets = await scratchpad_queries.list_snippets(tx, session.id)
    named = _named(snippets, request.ids)
    target = target_of(caller, session, request.target)
    promotion: Promotion = await queries.add(
        tx, session, caller.key_id, PromotionTrigger.EXPLICIT, target, reason=request.reason
    )
    return await carry_out(tx, resources.settings, session, promotion, named, _NOT_ASKED)


def _named(snippets: Sequence[Snippet], ids: Sequence[str] | None) -> list[Snippet]:
    if ids is None:
        return [snippet for snippet in snippets if snippet.is_to_examine]
    if missing := sorted(set(ids) - {snippet.id for snippet in snippets}):
        raise errors.NotFound(f"no such snippet in this session: {', '.join(missing)}")
    return [snippet for snippet in snippets if snippet.id in ids]
