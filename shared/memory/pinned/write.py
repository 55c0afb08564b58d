"""Pin texts to an agent or a user, and take them away again.

Whoever stores a copy of a text, as the response of a context, has locked its row. So a change waits for
that and then erases the copy, or the copy is made of the text as it is afterwards.
"""

from shared.foundation import errors, versions
from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.foundation.versions import ABSENT, Expected
from shared.infra.transaction import Transaction
from shared.memory.pinned import queries
from shared.memory.pinned.pinned_text import PinnedText, check_content, check_name
from shared.platform.idempotency import queries as idempotency_queries
from shared.platform.resources import Resources


async def put(
    resources: Resources,
    scope: Scope,
    name: str,
    content: str,
    origin: Origin,
    expected: Expected | None = None,
) -> PinnedText:
    """Pin a text under a name, or replace the one that stands there, and return it.

    The same text stays as it is, unless somebody more trusted says it now.

    Raises errors.PreconditionFailed unless the version that stands there is `expected`, and
    errors.LimitReached if a context would show more than `context_max_pinned_chars` characters.
    """
    check_name(name)
    check_content(content)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        await queries.lock_agent(tx, scope)
        before = await queries.find(tx, scope, name)
        versions.check(f"pinned text '{name}'", before.version if before else ABSENT, expected)
        max_chars = resources.settings.context_max_pinned_chars
        await require_room(tx, scope, name, content, max_chars)
        if before is None:
            return await queries.insert_text(tx, scope, name, content, origin)
        if before.content == content and before.origin.trust >= origin.trust:
            return before
        after = await queries.replace(tx, before, content, origin)
        await idempotency_queries.erase_responses(tx, [before.id])
    return after


async def require_room(tx: Transaction, scope: Scope, name: str, content: str, max_chars: int) -> None:
    """Raise errors.LimitReached if some context would show more characters of pinned texts than allowed.

    The caller has locked the agent's texts (`queries.lock_agent`).
    """
    others = await queries.count_other_characters(tx, scope, name)
    if others + len(content) > max_chars:
        raise errors.LimitReached(
            f"a context shows at most {max_chars} characters of pinned texts, those of the agent and of one"
            f" user together; beside this one there are {others}, so it may have {max(0, max_chars - others)}"
        )


async def remove(resources: Resources, scope: Scope, name: str, expected: Expected | None = None) -> bool:
    """Delete the text under a name of exactly this scope, and return whether there was one.

    Raises errors.PreconditionFailed unless its version is `expected`.
    """
    check_name(name)
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        await queries.lock_agent(tx, scope)
        before = await queries.find(tx, scope, name)
        versions.check(f"pinned text '{name}'", before.version if before else ABSENT, expected)
        if before is None:
            return False
        await queries.remove(tx, before)
        await idempotency_queries.erase_responses(tx, [before.id])
    return True
