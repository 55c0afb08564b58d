"""The files of documents in the file store, and how it is made sure that none is left behind.

A file is stored before the document that names it, in a store that may know no transactions. So a removal of
the file is written down first, and struck off in the transaction that stores the document: if a process dies
in between, the file is deleted when the removal is due. Each upload has a file id of its own, so that a
removal never means the file of another one.
"""

from shared.foundation import errors
from shared.foundation.content import Subject, declare_store
from shared.infra.transaction import Transaction
from shared.jobs import removals
from shared.jobs.removals import Family

FILES = Family(
    "files",
    declare_store("files", "document", Subject.DOCUMENT, reason="a file is deleted with its document, by id"),
)
_UPLOAD_SECONDS = 3600.0
"""The time in which an upload stores its document after its file, at the latest."""
_REPLACED_SECONDS = 5.0


async def expect(tx: Transaction, file_id: str) -> None:
    """Write down that a file is about to be stored, and is to be deleted unless it is kept."""
    await removals.add(tx, file_id, {FILES: [file_id]}, delay=_UPLOAD_SECONDS)


async def keep(tx: Transaction, file_id: str) -> None:
    """Let an expected file stay. Raises errors.Unavailable if it took so long that it is being deleted."""
    if not await removals.has_rest(tx, file_id):
        raise errors.Unavailable("the file store", "storing the file took too long")
    await removals.complete(tx, file_id, FILES, [file_id])
    await removals.finish(tx, file_id)


async def remove_replaced(tx: Transaction, file_id: str) -> None:
    """Delete the file of an earlier version after this transaction."""
    await removals.add(tx, file_id, {FILES: [file_id]}, delay=_REPLACED_SECONDS)
