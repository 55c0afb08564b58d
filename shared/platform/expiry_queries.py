"""Whether a row that repeats the text of records repeats that of an expired one.

A deletion clears such rows, but what has expired is gone for callers before the sweep deletes it.
"""

from sqlalchemy import ColumnElement, Table, or_, text


def shows_expired(table: Table) -> ColumnElement[bool]:
    """Return the condition that one of a row's `record_ids` is a memory or a session that has expired.

    The records are asked, because their expiry may have changed since the row was stored.
    """
    name = table.name
    return or_(
        *(
            text(
                f"EXISTS (SELECT FROM {records} r WHERE r.tenant = {name}.tenant"
                f" AND r.id = ANY ({name}.record_ids) AND r.expires_at <= now())"
            )
            for records in ("memory", "session")
        )
    )
