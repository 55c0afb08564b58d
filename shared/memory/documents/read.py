"""Read documents: what they are and how far they are, not their text."""

from datetime import datetime

from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.memory.documents import queries
from shared.memory.documents.document import Document, DocumentState
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


async def get_document(resources: Resources, caller: Caller, document_id: str) -> Document:
    """Return a document. Raises errors.NotFound if there is none."""
    rights.require_area(caller, Area.TENANT, Action.READ)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        document = await queries.get(tx, document_id)
    if document is None:
        raise errors.NotFound(f"document not found: {document_id}")
    return document


async def list_documents(
    resources: Resources,
    caller: Caller,
    limit: int,
    after: tuple[datetime, str] | None,
    state: DocumentState | None,
) -> list[Document]:
    """Return documents, newest first: all, or those in a state."""
    rights.require_area(caller, Area.TENANT, Action.READ)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        return await queries.list_page(tx, limit, after, state)
