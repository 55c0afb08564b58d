"""Upload a file: as a new document, as the next version of one, or as what is stored already.

A document is known by its `source`, such as an address or a path: another file from there replaces its text.
Without a source each file is a document of its own. The same bytes are stored once for the tenant. So an
upload that is repeated, for whatever reason, changes nothing.
"""

import uuid_utils
from sqlalchemy.ext.asyncio import AsyncConnection

from shared.foundation.scope import Caller
from shared.foundation.stages import PARSE_DOCUMENT, RecordKind
from shared.jobs import queries as job_queries
from shared.memory.documents import queries, stored_files
from shared.memory.documents.document import Document, DocumentState, NewFile
from shared.memory.documents.files.store import file_store
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources


def require_right(caller: Caller) -> None:
    """Raise errors.Forbidden for a bound key: a document is read by the whole tenant."""
    rights.require_area(caller, Area.TENANT, Action.WRITE)


async def upload(resources: Resources, caller: Caller, new: NewFile) -> Document:
    """Store a file and make it due for a worker; return its document, which may have been there before.

    Raises errors.Unavailable if the file store or Postgres is unavailable.
    """
    require_right(caller)
    tenant, file_id = caller.tenant, str(uuid_utils.uuid7())
    async with resources.postgres.for_tenant(tenant) as connection:
        document = await _find_same(connection, tenant, new)
        if document is None:
            await stored_files.expect(connection, tenant, file_id)
    if document is None:
        await file_store(resources).put(tenant, file_id, new.path)
        async with resources.postgres.for_tenant(tenant) as connection:
            # Another request may have stored the same bytes meanwhile; then nobody keeps this file.
            document = await _find_same(connection, tenant, new)
            if document is None:
                document = await _store(connection, tenant, new, file_id)
    if document.state is DocumentState.PENDING:
        resources.publisher.wake(PARSE_DOCUMENT)
    return document


async def _find_same(connection: AsyncConnection, tenant: str, new: NewFile) -> Document | None:
    """Return the document that has these bytes already, unless those of its source have changed to them."""
    await queries.lock_documents(connection, tenant)
    of_source = await queries.find_by_source(connection, tenant, new.source) if new.source else None
    if of_source is not None:
        return await _retry_if_failed(connection, of_source) if of_source.sha256 == new.sha256 else None
    document = await queries.find_by_sha256(connection, tenant, new.sha256)
    if document is None:
        return None
    if document.source is None and new.source is not None:
        document = await queries.name_source(connection, document, new.source)
    return await _retry_if_failed(connection, document)


async def _retry_if_failed(connection: AsyncConnection, document: Document) -> Document:
    if document.state is not DocumentState.FAILED:
        return document
    document = await queries.begin_again(connection, document)
    await _enqueue(connection, document)
    return document


async def _store(connection: AsyncConnection, tenant: str, new: NewFile, file_id: str) -> Document:
    existing = await queries.find_by_source(connection, tenant, new.source) if new.source else None
    if existing is None:
        document_id = str(uuid_utils.uuid7())
        document = await queries.insert_document(connection, tenant, document_id, new, file_id)
    else:
        document = await queries.replace_file(connection, existing, new, file_id)
        await stored_files.remove_replaced(connection, tenant, existing.file_id)
    await stored_files.keep(connection, tenant, file_id)
    await _enqueue(connection, document)
    return document


async def _enqueue(connection: AsyncConnection, document: Document) -> None:
    versions = {document.id: document.version}
    await job_queries.enqueue(connection, document.tenant, RecordKind.DOCUMENT, PARSE_DOCUMENT, versions)
