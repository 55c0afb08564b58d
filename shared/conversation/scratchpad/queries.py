"""Every statement on snippets.

Functions take the caller's transaction and never commit. Those that write expect the session's row to be
locked: that lock orders all writers of a scratchpad.
"""

from collections.abc import Sequence
from operator import attrgetter

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from shared.conversation.scratchpad.snippet import MAX_SNIPPETS, Snippet
from shared.conversation.scratchpad.table import scratchpad_snippet as snippet_table
from shared.foundation import ids
from shared.foundation.origin import Origin
from shared.infra.postgres import is_any_of, tenant_filter
from shared.infra.transaction import Transaction

_NEXT_REVISION = """
    SELECT greatest((extract(epoch FROM clock_timestamp()) * 1000000)::bigint, max(revision) + 1) AS revision
    FROM scratchpad_snippet WHERE tenant = :tenant AND session_id = :session_id
"""
# `updated_at` is the time of the clock, and not of the transaction, which may have waited for the session: a
# summary asks what was noted since the one before had read the scratchpad, under the same lock.
# A free slot, else that of the promoted snippet that was used least recently, else of any.
_PLACE = text(
    f"""
    INSERT INTO scratchpad_snippet (tenant, session_id, slot, id, content, playbook_id, revision, updated_at,
                                    origin_channel, origin_trust, origin_key)
    SELECT :tenant, :session_id, chosen.slot, :id, :content, :playbook_id, next.revision, clock_timestamp(),
           :origin_channel, :origin_trust, :origin_key
    FROM (
        SELECT slots.slot
        FROM generate_series(1, {MAX_SNIPPETS}) AS slots (slot)
        LEFT JOIN scratchpad_snippet s
            ON s.tenant = :tenant AND s.session_id = :session_id AND s.slot = slots.slot
        ORDER BY s.id IS NOT NULL, s.promoted_at IS NULL, s.revision, slots.slot
        LIMIT 1
    ) AS chosen, ({_NEXT_REVISION}) AS next
    ON CONFLICT (tenant, session_id, slot) DO UPDATE
        SET id = excluded.id, content = excluded.content, playbook_id = excluded.playbook_id,
            revision = excluded.revision, count = 1, promoted_at = NULL, created_at = now(),
            updated_at = excluded.updated_at, origin_channel = excluded.origin_channel,
            origin_trust = excluded.origin_trust, origin_key = excluded.origin_key
    RETURNING *
    """  # noqa: S608  (constants only)
).bindparams(bindparam("playbook_id", type_=Text), bindparam("origin_key", type_=Text))
# Materialized: what is used together gets one revision, although a plan may look it up for each row.
_USE = """
    WITH next AS MATERIALIZED ({next_revision})
    UPDATE scratchpad_snippet s SET revision = next.revision {more}
    FROM next
    WHERE s.tenant = :tenant AND s.session_id = :session_id AND s.id = ANY (:ids)
    RETURNING s.*
"""
_IDS = bindparam("ids", type_=ARRAY(Text))
_TOUCH = text(_USE.format(more="", next_revision=_NEXT_REVISION)).bindparams(_IDS)
_COUNT_AGAIN = text(
    _USE.format(
        more=""", count = least(s.count, 2147483646) + 1, updated_at = clock_timestamp(),
            origin_channel = :origin_channel, origin_trust = :origin_trust, origin_key = :origin_key""",
        next_revision=_NEXT_REVISION,
    )
).bindparams(_IDS, bindparam("origin_key", type_=Text))
_PROMOTE = text(
    _USE.format(more=", promoted_at = coalesce(s.promoted_at, now())", next_revision=_NEXT_REVISION)
).bindparams(_IDS)
_LIST = (
    select(*snippet_table.c)
    .where(snippet_table.c.tenant == bindparam("tenant"))
    .where(snippet_table.c.session_id == bindparam("session_id"))
    .order_by(snippet_table.c.created_at, snippet_table.c.id)
)


async def list_snippets(tx: Transaction, session_id: str) -> list[Snippet]:
    """Return the snippets of a session, oldest first."""
    rows = await tx.fetch(_LIST, {"tenant": tx.tenant, "session_id": session_id})
    return [Snippet.from_row(row) for row in rows]


async def last_revision(tx: Transaction, session_id: str) -> int | None:
    """Return the highest revision of a session's snippets, which every change raises; None without any."""
    where = (tenant_filter(snippet_table, tx.tenant), snippet_table.c.session_id == session_id)
    revision: int | None = await tx.scalar(select(func.max(snippet_table.c.revision)).where(*where))
    return revision


async def place(
    tx: Transaction, session_id: str, content: str, origin: Origin, playbook_id: str | None = None
) -> Snippet:
    """Store a new snippet; if there are 64, it takes the place of one that was promoted, or least used."""
    key = {"tenant": tx.tenant, "session_id": session_id, "id": ids.new_record_id()}
    values = key | {"content": content, "playbook_id": playbook_id} | origin.columns()
    return Snippet.from_row((await tx.execute(_PLACE, values)).mappings().one())


async def count_again(tx: Transaction, snippet: Snippet, origin: Origin) -> Snippet:
    """Count one more write of a snippet; the most trusted one decides where it comes from."""
    key = {"tenant": tx.tenant, "session_id": snippet.session_id, "ids": [snippet.id]}
    values = key | max(snippet.origin, origin, key=attrgetter("trust")).columns()
    return Snippet.from_row((await tx.execute(_COUNT_AGAIN, values)).mappings().one())


async def touch(tx: Transaction, session_id: str, snippet_ids: Sequence[str]) -> None:
    """Note that snippets were used."""
    if snippet_ids:
        values = {"tenant": tx.tenant, "session_id": session_id, "ids": list(snippet_ids)}
        await tx.execute(_TOUCH, values)


async def mark_promoted(tx: Transaction, session_id: str, snippet_ids: Sequence[str]) -> None:
    """Note that the texts of snippets are kept elsewhere, in the transaction that stored them there."""
    if snippet_ids:
        values = {"tenant": tx.tenant, "session_id": session_id, "ids": list(snippet_ids)}
        await tx.execute(_PROMOTE, values)


async def list_sessions_repeating(tx: Transaction, playbook_ids: Sequence[str]) -> list[str]:
    """Return the sessions whose scratchpads repeat some of these playbooks."""
    where = (tenant_filter(snippet_table, tx.tenant), is_any_of(snippet_table.c.playbook_id, playbook_ids))
    return list(await tx.scalars(select(snippet_table.c.session_id).where(*where).distinct()))
