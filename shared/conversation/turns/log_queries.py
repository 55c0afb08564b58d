"""Statements on the log of a session: pages of it, its end, and single turns."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    RowMapping,
    Text,
    bindparam,
    cast,
    exists,
    func,
    literal,
    select,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from shared.conversation.sessions.table import session as session_table
from shared.conversation.turns.queries import select_turns
from shared.conversation.turns.table import LOG_COLUMNS, READ_COLUMNS, turn
from shared.conversation.turns.turn import Turn, is_read_by_models, searchable_text_of, stored_trust
from shared.conversation.turns.turn_range import TurnKey
from shared.foundation.origin import Origin, Trust
from shared.foundation.roles import Role
from shared.infra.postgres import is_any_of, is_any_turn_of, tenant_filter
from shared.infra.transaction import Transaction
from shared.search.text import indexed_text, tsvector


class LogEnd(NamedTuple):
    """The last turns of a session, oldest first, and the log that they end, as of one moment."""

    turns: list[Turn]
    turn_count: int
    log_revision: int


async def list_end(tx: Transaction, session_id: str, count: int) -> LogEnd:
    """Return the last `count` turns of a session; one statement, so that turns and counts agree."""
    counts = (session_table.c.turn_count, session_table.c.log_revision)
    is_session = (session_table.c.tenant == turn.c.tenant, session_table.c.id == turn.c.session_id)
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id)
    statement = select(*LOG_COLUMNS, *counts).where(*where, *is_session)
    rows = (await tx.execute(statement.order_by(turn.c.seq.desc()).limit(count))).mappings().all()
    if not rows:
        return LogEnd([], 0, 0)
    turns = [Turn.from_row(row) for row in reversed(rows)]
    return LogEnd(turns, rows[0]["turn_count"], rows[0]["log_revision"])


async def list_page(tx: Transaction, session_id: str, after_seq: int, limit: int) -> list[Turn]:
    """Return the turns of a session with the lowest numbers above `after_seq`, in their order."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.seq > after_seq)
    return await select_turns(tx, select(*LOG_COLUMNS).where(*where).order_by(turn.c.seq).limit(limit))


async def list_page_before(tx: Transaction, session_id: str, before_seq: int, limit: int) -> list[Turn]:
    """Return the turns of a session with the highest numbers below `before_seq`, in their order."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.seq < before_seq)
    newest_first = select(*LOG_COLUMNS).where(*where).order_by(turn.c.seq.desc()).limit(limit)
    return (await select_turns(tx, newest_first))[::-1]


async def get(tx: Transaction, session_id: str, seq: int) -> Turn | None:
    """Return a turn, or None."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.seq == seq)
    return next(iter(await select_turns(tx, select(*LOG_COLUMNS).where(*where))), None)


async def last_reply(tx: Transaction, session_id: str) -> int | None:
    """Return the number of a session's last turn that is not the user's, or None."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.role != Role.USER)
    seq: int | None = await tx.scalar(select(func.max(turn.c.seq)).where(*where))
    return seq


async def next_of_user(tx: Transaction, session_id: str, after_seq: int) -> int | None:
    """Return the number of the user's first turn after `after_seq`, or None."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.role == Role.USER)
    statement = select(func.min(turn.c.seq)).where(*where, turn.c.seq > after_seq)
    seq: int | None = await tx.scalar(statement)
    return seq


def next_of_user_after(
    tenant: str, session_id: ColumnElement[str], after_seq: ColumnElement[int]
) -> ColumnElement[int]:
    """Return the number that `next_of_user` finds, in a statement that has both columns."""
    where = (tenant_filter(turn, tenant), turn.c.session_id == session_id, turn.c.role == Role.USER)
    statement = select(func.min(turn.c.seq)).where(*where, turn.c.seq > after_seq)
    return statement.scalar_subquery().correlate_except(turn)


def is_continued(
    tenant: str, session_id: ColumnElement[str], after_seq: ColumnElement[int]
) -> ColumnElement[bool]:
    """Return the condition that the user has a turn after `after_seq`: both are columns of a statement."""
    where = (tenant_filter(turn, tenant), turn.c.session_id == session_id, turn.c.role == Role.USER)
    return exists(select(turn.c.seq).where(*where, turn.c.seq > after_seq))


def received_at_of(
    tenant: str, session_id: ColumnElement[str], seq: ColumnElement[int]
) -> ColumnElement[datetime]:
    """Return when a turn was received, in a statement that has both columns; NULL if it is not there."""
    where = (tenant_filter(turn, tenant), turn.c.session_id == session_id, turn.c.seq == seq)
    # Nested in another subquery, a statement finds the columns around it only if it names its own tables.
    return select(turn.c.received_at).where(*where).scalar_subquery().correlate_except(turn)


async def received_at(tx: Transaction, session_id: str, seq: int) -> datetime | None:
    """Return when a turn was received; None if it is not there."""
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == session_id, turn.c.seq == seq)
    moment: datetime | None = await tx.scalar(select(turn.c.received_at).where(*where))
    return moment


async def update_turn(tx: Transaction, before: Turn, changes: Mapping[str, Any], origin: Origin) -> Turn:
    """Change fields of a turn of a locked session, as its next version, and return it.

    A turn with another text no longer shows what was recalled with the old one, and has the `origin`.
    """
    values = dict(changes)
    if is_read_by_models(changes):
        after = before.model_copy(update=values)
        terms = tsvector.terms_of(searchable_text_of(after.speaker, after.content))
        search_terms = func.array_to_tsvector(literal(terms, ARRAY(Text)))
        values |= {"search_terms": search_terms, "recalled_lines": [], "recalled_ids": []}
        values |= origin.columns()
    now = cast(func.extract("epoch", func.clock_timestamp()) * 1_000_000, BigInteger)
    where = (tenant_filter(turn, tx.tenant), turn.c.session_id == before.session_id, turn.c.seq == before.seq)
    columns = {**values, "edited_at": func.now(), "version": func.greatest(turn.c.version + 1, now)}
    statement = update(turn).where(*where).values(columns).returning(*LOG_COLUMNS)
    return Turn.from_row((await tx.execute(statement)).mappings().one())


class Voice(NamedTuple):
    """Who speaks in a turn, and how far that is trusted."""

    role: Role
    speaker: str | None
    trust: Trust


async def list_voices(tx: Transaction, turn_keys: Iterable[TurnKey]) -> dict[TurnKey, Voice]:
    """Return who speaks in those of the turns that are stored."""
    where = (tenant_filter(turn, tx.tenant), is_any_turn_of(turn.c.session_id, turn.c.seq, turn_keys))
    columns = (turn.c.session_id, turn.c.seq, turn.c.role, turn.c.speaker, turn.c.origin_trust)
    rows = (await tx.execute(select(*columns).where(*where))).mappings()
    return {(row["session_id"], row["seq"]): _voice(row) for row in rows}


async def list_voices_of(tx: Transaction, session_ids: Collection[str]) -> dict[str, set[Voice]]:
    """Return who speaks in any turn of these sessions, by session id."""
    if not session_ids:
        return {}
    where = (tenant_filter(turn, tx.tenant), is_any_of(turn.c.session_id, session_ids))
    columns = (turn.c.session_id, turn.c.role, turn.c.speaker, turn.c.origin_trust)
    voices: dict[str, set[Voice]] = {}
    for row in (await tx.execute(select(*columns).where(*where).distinct())).mappings():
        voices.setdefault(row["session_id"], set()).add(_voice(row))
    return voices


def _voice(row: RowMapping) -> Voice:
    return Voice(Role(row["role"]), row["speaker"], stored_trust({**row}))


async def list_embedding_texts(tx: Transaction, turn_keys: Iterable[tuple[str, int]]) -> list[str]:
    """Return the texts of which turns, given as (session id, seq), were embedded."""
    where = (tenant_filter(turn, tx.tenant), is_any_turn_of(turn.c.session_id, turn.c.seq, turn_keys))
    rows = await tx.execute(select(turn.c.content, turn.c.speaker).where(*where))
    return [indexed_text.embedding_text(row.content, speaker=row.speaker) for row in rows]


async def list_before(tx: Transaction, first_seqs: Mapping[str, int], count: int) -> list[Turn]:
    """Return up to `count` turns of each session before the turn with this number, by session and number."""
    starts = (
        func.unnest(
            bindparam("session_ids", list(first_seqs), ARRAY(Text)),
            bindparam("first_seqs", list(first_seqs.values()), ARRAY(Integer)),
        )
        .table_valued("session_id", "seq", name="start")
        .render_derived()
    )
    before = (
        select(*READ_COLUMNS)
        .where(
            tenant_filter(turn, tx.tenant),
            turn.c.session_id == starts.c.session_id,
            turn.c.seq < starts.c.seq,
        )
        .order_by(turn.c.seq.desc())
        .limit(count)
        .lateral()
    )
    statement = select(before).select_from(starts.join(before, true()))
    turns = await select_turns(tx, statement)
    return sorted(turns, key=lambda listed: (listed.session_id, listed.seq))
