"""Write a snippet into a session's scratchpad: a new one, or one more count of a near-identical one.

One transaction under the lock of the session's row decides all of it, whichever gateway it runs in: whether
the text is a repetition, and else which slot it takes. The response is sent after its commit; Redis has only
a copy (`cache`), without which nothing is lost.
"""

from typing import Any, NamedTuple

from shared.conversation.scratchpad import cache, queries
from shared.conversation.scratchpad.near_identical import words_of
from shared.conversation.scratchpad.snippet import MANY_SNIPPETS, Snippet, check_content
from shared.conversation.sessions import queries as session_queries
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.config import Settings
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Caller
from shared.infra import language_model
from shared.infra.transaction import Transaction
from shared.jobs import summary_jobs
from shared.platform.idempotency.idempotent import IdempotencyKey, idempotent
from shared.platform.resources import Resources

JsonObject = dict[str, Any]


class Written(NamedTuple):
    """A snippet that was written, and all snippets of its session, oldest first."""

    snippet: Snippet
    snippets: list[Snippet]


async def write(
    resources: Resources,
    caller: Caller,
    session_id: str,
    content: str,
    key: IdempotencyKey | None = None,
    *,
    trust: Trust | None = None,
) -> JsonObject:
    """Write a snippet and return it as JSON, with `degraded`.

    Raises errors.NotFound for a session that the caller may not see, and errors.Invalid for a blank or too
    long content, and for more `trust` than the caller has.
    """
    content, origin = check_content(content), caller.origin.lowered(trust)
    async with resources.postgres.for_tenant(caller.tenant) as tx, idempotent(tx, key) as request:
        if request.stored is not None:
            return {**request.stored, "degraded": []}
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        written = await note(tx, resources.settings, session, content, origin)
        response = written.snippet.model_dump(mode="json")
        await request.store(response, record_ids=[session.id], user_id=session.user_id)
    return {**response, "degraded": await cache.store(resources, session, written.snippets)}


async def note(
    tx: Transaction,
    settings: Settings,
    session: Session,
    content: str,
    origin: Origin,
    playbook_id: str | None = None,
) -> Written:
    """Write a valid content into the scratchpad of a locked session. `cache.store` follows the commit.

    A snippet that repeats a playbook names it, so that both are deleted together. The caller has locked the
    playbook.
    """
    snippets = await queries.list_snippets(tx, session.id)
    words = words_of(content)
    repeated = next((snippet for snippet in snippets if words_of(snippet.content) == words), None)
    if repeated is None:
        snippet = await queries.place(tx, session.id, content, origin, playbook_id)
    else:
        snippet = await queries.count_again(tx, repeated, origin)
    if len(snippets) + 1 >= MANY_SNIPPETS and language_model.is_configured(settings):
        await summary_jobs.schedule_summary(tx, session.id)
    await session_queries.renew_expiry(tx, session)
    others = [other for other in snippets if other.slot != snippet.slot]
    return Written(snippet, sorted([*others, snippet], key=_order))


def _order(snippet: Snippet) -> tuple[Any, str]:
    return snippet.created_at, snippet.id
