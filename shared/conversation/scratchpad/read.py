"""Read the scratchpad of a session."""

from datetime import datetime

from shared.conversation.scratchpad import cache, queries
from shared.conversation.scratchpad.snippet import Snippet
from shared.conversation.sessions.open import get_session
from shared.conversation.sessions.session import Session
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.platform.resources import Resources
from shared.search.text.tokenizer import tokenize, tokenize_query


async def list_snippets(
    resources: Resources, caller: Caller, session_id: str, query: str | None = None
) -> tuple[list[Snippet], list[str]]:
    """Return the snippets of a session, oldest first, and what was unavailable.

    With a `query`, only those that have all of its words; that counts as a use of them. Raises
    errors.NotFound for a session that the caller may not see.
    """
    if query is not None:
        return await _find(resources, caller, session_id, query), []
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id)
        revision = await queries.last_revision(tx, session.id)
    return await cache.load(resources, session, revision)


async def _find(resources: Resources, caller: Caller, session_id: str, query: str) -> list[Snippet]:
    """Return the snippets with all words of a query, and note their use."""
    terms = set(tokenize_query(query))
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        session = await get_session(tx, resources.settings, caller, session_id, lock=True)
        snippets = await queries.list_snippets(tx, session.id)
        found = [snippet for snippet in snippets if terms <= set(tokenize(snippet.content))]
        await queries.touch(tx, session.id, [snippet.id for snippet in found])
    return found


async def read_insights(tx: Transaction, session: Session, since: datetime | None) -> list[str]:
    """Return what the agent has noted since a moment, oldest first, for the summary; all for None.

    Copies of playbooks are left out: they go with their originals, and a summary would keep what they say.
    """
    snippets = await queries.list_snippets(tx, session.id)
    notes = [snippet for snippet in snippets if snippet.is_own_note]
    return [note.content for note in notes if since is None or note.updated_at > since]
