"""The statements that list the users and the agents whom the tables of a tenant name.

Which tables these are, the register says. Nobody keeps a list of users, so the statement takes the next id
after the last one from the index of each table, and the least of these is the next of the list. A page costs
one look into each index per id, however many rows a user or a tenant has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from sqlalchemy import ARRAY, TextClause, text

from shared.foundation.content import Subject
from shared.infra.transaction import Transaction
from shared.lifecycle import register
from shared.lifecycle.register import Reference

# Stored responses are of the last day, and texts and files of an agent never without its profile.
_PASSED_OVER = frozenset({"idempotent_response", "agent_text", "agent_file"})


@dataclass(frozen=True, slots=True)
class KnownSubject:
    """A user or an agent, with when the last memory was seen or the last session opened."""

    id: str
    last_active_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Order:
    """How ids are compared, which must be as their indexes do: those of users by their characters."""

    at_least: str
    more: str
    ascending: str
    collation: str


_ORDERS = {
    Subject.USER: _Order("~>=~", "~>~", "USING ~<~", 'COLLATE "C"'),
    Subject.AGENT: _Order(">=", ">", "", ""),
}


def sources(subject: Subject, *, of_agent: bool = False) -> list[Reference]:
    """Return the columns that a listing of users or of agents reads; of one agent, if rows name agents."""
    return [
        reference
        for reference in register.references()
        if subject in reference.names.subjects
        and reference.table.name not in _PASSED_OVER
        # Whoever a list names is named by a session as well.
        and not isinstance(reference.column.type, ARRAY)
        and (not of_agent or "agent_id" in reference.table.c)
    ]


async def list_users(
    tx: Transaction, agent_id: str | None, prefix: str, start: str, limit: int
) -> list[KnownSubject]:
    """Return up to `limit` users from the id `start` on whose ids have the prefix, by id.

    With `agent_id`, those whom a row of this agent names.
    """
    values = {"tenant": tx.tenant, "prefix": prefix, "start": max(start, prefix), "limit": limit}
    if agent_id is not None:
        values["agent_id"] = agent_id
    rows = await tx.execute(_statement(Subject.USER, of_agent=agent_id is not None), values)
    return [KnownSubject(*row) for row in rows]


async def list_agents(tx: Transaction, start: str, limit: int) -> list[KnownSubject]:
    """Return up to `limit` agents from the id `start` on, by id."""
    values = {"tenant": tx.tenant, "prefix": "", "start": start, "limit": limit}
    rows = await tx.execute(_statement(Subject.AGENT, of_agent=False), values)
    return [KnownSubject(*row) for row in rows]


@cache
def _statement(subject: Subject, *, of_agent: bool) -> TextClause:
    order, column = _ORDERS[subject], f"{subject}_id"
    references = sources(subject, of_agent=of_agent)
    first = _least(references, order, f"{order.at_least} :start", of_agent=of_agent)
    following = _least(references, order, f"{order.more} page.id", of_agent=of_agent)
    of = f"tenant = :tenant AND {column} = page.id{_of_agent(of_agent=of_agent)}"
    return text(
        f"""
        WITH RECURSIVE page (id, position) AS (
            SELECT {first}, 1
            UNION ALL
            SELECT {following}, position + 1 FROM page
            WHERE position < :limit AND starts_with(id, :prefix)
        )
        SELECT id, greatest((SELECT max(last_seen_at) FROM memory WHERE {of}),
                            (SELECT max(created_at) FROM session WHERE {of}))
        FROM page WHERE starts_with(id, :prefix) ORDER BY position
        """  # noqa: S608  (of names of tables and columns)
    )


def _least(references: Sequence[Reference], order: _Order, condition: str, *, of_agent: bool) -> str:
    """Return the expression of the least id that meets a condition, or NULL."""
    ids = ", ".join(_next(reference, order, condition, of_agent=of_agent) for reference in references)
    # An id of another collation than an index has is not looked up in that index.
    return f'least({ids}) COLLATE "default"'


def _next(reference: Reference, order: _Order, condition: str, *, of_agent: bool) -> str:
    column = reference.column.name
    only = "".join(f" AND {name} = '{value}'" for name, value in reference.names.only)
    return (
        f"(SELECT {column} FROM {reference.table.name} WHERE tenant = :tenant AND {column} {condition}"  # noqa: S608
        f"{only}{_of_agent(of_agent=of_agent)} ORDER BY {column} {order.ascending} LIMIT 1) {order.collation}"
    )


def _of_agent(*, of_agent: bool) -> str:
    return " AND agent_id = :agent_id" if of_agent else ""
