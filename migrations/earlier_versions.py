"""Recognise a database that an earlier development version of Loci made.

Those versions used other names for nearly every table, under the revisions 0001 to 0008. No
migration leads from there to here: the long-term memory is exported and imported again.
"""

from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from shared.foundation import errors

_REVISIONS = frozenset(f"{number:04}" for number in range(1, 9))


def refuse_earlier_schema(connection: Connection) -> None:
    """Raise errors.Misconfigured, which says what to do, if an earlier development version made the schema.

    A database without any schema passes.
    """
    for revision in MigrationContext.configure(connection).get_current_heads():
        if revision in _REVISIONS:
            raise errors.Misconfigured(
                f"this database was made by an earlier development version of Loci (schema {revision}), "
                "whose tables this version cannot read. Export its long-term memory with that version "
                "(`loci export`), delete the data directory (or, with stores of your own, empty Postgres, "
                "Redis and Qdrant), start this version, and import the file with `loci import`."
            )
