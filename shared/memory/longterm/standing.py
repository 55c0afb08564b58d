"""Whether what was learnt with a memory still holds: the memory, or what it became, is live and valid."""

from sqlalchemy import Boolean, ColumnElement, func


def stands(tenant: ColumnElement[str], memory_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that a memory stands, in a statement that has both columns; NULL without an id.

    A memory stands while it is live, valid and not expired. One that a worker has merged or rewritten stands
    as long as a successor does; one that a caller archived does not. The database function `memory_stands`
    (`migrations/versions/a019_learnt_preferences.py`) follows the successors to their end.
    """
    return func.memory_stands(tenant, memory_id, type_=Boolean)
