"""Upload a file: as a new document, as the next version of one, or as what is stored already.

A document is known by its `source`, such as an address or a path: another file from there replaces its text,
and the response says which. A file without a source, which has no name either, is a document of its own.
The same bytes are stored once for the tenant: from another source they give the same document, which then
has both. When the bytes of one of these change, it leaves the document to the others and begins one of its
own, so that theirs are found all the time. A source that has only this document leaves it for one that has
its new bytes: what it leaves is deleted as soon as the other one is found.

So an upload that is repeated changes nothing, with two exceptions: a document that has failed, and one whose
text was taken in another way than it would be today, get their next version.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

import uuid_utils

from shared.foundation.origin import Origin
from shared.foundation.scope import Caller
from shared.foundation.stages import PARSE_DOCUMENT, RecordKind
from shared.infra.transaction import Transaction
from shared.jobs import queries as job_queries
from shared.lifecycle.delete_document import delete_former
from shared.memory.documents import queries, stored_files
from shared.memory.documents.chunk import method_of
from shared.memory.documents.document import Document, DocumentState, NewFile, ReplacedText
from shared.memory.documents.files.store import file_store
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.idempotency.idempotent import IdempotencyKey, IdempotentRequest, find_stored
from shared.platform.resources import Resources

Json = dict[str, Any]


def require_right(caller: Caller) -> None:
    """Raise errors.Forbidden for a bound key: a document is read by the whole tenant."""
    rights.require_area(caller, Area.TENANT, Action.WRITE)


async def upload(
    resources: Resources, caller: Caller, new: NewFile, key: IdempotencyKey | None = None
) -> Json:
    """Store a file and make it due for a worker; return its document, which may have been there before.

    The digest of `key` is added here. Raises errors.Invalid for a trust above that of documents,
    errors.Unavailable if the file store or Postgres is unavailable, and errors.Conflict or
    errors.StillRunning for a key that was used with another file or is in use.
    """
    require_right(caller)
    origin = new.origin(caller)
    key = None if key is None else replace(key, digest=_digest(new))
    settings = resources.settings
    method = method_of(settings.document_chunk_chars, settings.document_chunk_overlap)
    attempt = _Upload(caller.tenant, str(uuid_utils.uuid7()), new, origin, key, method)
    async with resources.postgres.for_tenant(attempt.tenant) as tx:
        response = await attempt.respond_without_file(tx)
    if response is None:
        await file_store(resources).put(attempt.tenant, attempt.file_id, new.path)
        async with resources.postgres.for_tenant(attempt.tenant) as tx:
            response = await attempt.respond_with_file(tx)
    if response["state"] == DocumentState.PENDING:
        resources.publisher.wake(PARSE_DOCUMENT)
    return response


def _digest(new: NewFile) -> bytes:
    """Return what tells this upload from others: the file and what is said of it."""
    return hashlib.sha256(json.dumps([new.sha256, new.file_name, new.title, new.source]).encode()).digest()


@dataclass(frozen=True, slots=True)
class _Upload:
    """One upload. Each method is a step of it in a transaction of its own."""

    tenant: str
    file_id: str
    new: NewFile
    origin: Origin
    key: IdempotencyKey | None
    method: str

    async def respond_without_file(self, tx: Transaction) -> Json | None:
        """Return the response if the file needs not be stored; otherwise expect it and return None."""
        known = await self._look_up(tx)
        if known.response is None:
            await stored_files.expect(tx, self.file_id)
        return known.response

    async def respond_with_file(self, tx: Transaction) -> Json:
        """Keep the file as that of its document, and return the response.

        Another request may have stored the same bytes meanwhile; then nobody keeps this file.
        """
        known = await self._look_up(tx)
        if known.response is not None:
            return known.response
        document = await _store(tx, self.new, self.origin, known.of_source, self.file_id)
        return await _respond(known.request, document, _other_text(known.of_source, self.new))

    async def _look_up(self, tx: Transaction) -> "_Known":
        """Respond if the request was made before or the bytes are there already; otherwise lock documents."""
        key, new = self.key, self.new
        request = IdempotentRequest(tx, key, await find_stored(tx, key))
        if request.stored is not None:
            return _Known(request, response=request.stored)
        await queries.lock_documents(tx)
        of_source = await queries.find_by_source(tx, new.source) if new.source else None
        document = await _find_same(tx, new, of_source)
        if document is None:
            return _Known(request, of_source)
        if document.state is DocumentState.READY and document.method != self.method:
            document = await queries.begin_again(tx, document)
            await _enqueue(tx, document)
        return _Known(request, of_source, await _respond(request, document, _other_text(of_source, new)))


@dataclass(frozen=True, slots=True)
class _Known:
    """What a transaction knows of an upload: the document of its source, and the response if it has one."""

    request: IdempotentRequest
    of_source: Document | None = None
    response: Json | None = None


def _other_text(of_source: Document | None, new: NewFile) -> ReplacedText | None:
    """Return what the source of a file has until now, if that is another text."""
    if of_source is None or of_source.sha256 == new.sha256:
        return None
    return ReplacedText.model_validate(of_source, from_attributes=True)


async def _respond(request: IdempotentRequest, document: Document, replaced: ReplacedText | None) -> Json:
    response = document.model_dump(mode="json")
    if replaced is not None:
        response["replaced"] = replaced.model_dump()
    await request.store(response, record_ids=[document.id])
    return response


async def _find_same(tx: Transaction, new: NewFile, of_source: Document | None) -> Document | None:
    """Return the document that has these bytes already, with their source, unless it has failed with them."""
    if of_source is not None and of_source.sha256 == new.sha256:
        return None if of_source.state is DocumentState.FAILED else of_source
    same = await queries.find_by_sha256(tx, new.sha256)
    if same is None or same.state is DocumentState.FAILED:
        return None
    return await _move_source(tx, of_source, same, new)


async def _move_source(tx: Transaction, old: Document | None, document: Document, new: NewFile) -> Document:
    """Let the source of a file, if it has one, be one of a document and no longer of another.

    What no source is left of stays until the document is found, if it is found itself.
    """
    if new.source is None:
        return await queries.keep(tx, document)
    if old is not None:
        await queries.remove_source(tx, old, new.source)
    document = await queries.add_source(tx, document, new.source)
    is_found = document.state is DocumentState.READY
    await delete_former(tx, [new.source], is_found=is_found)
    return document


async def _store(
    tx: Transaction, new: NewFile, origin: Origin, of_source: Document | None, file_id: str
) -> Document:
    existing = await _find_replaced(tx, new, of_source)
    if existing is None:
        document_id = str(uuid_utils.uuid7())
        document = await queries.insert_document(tx, document_id, new, file_id, origin)
    else:
        document = await queries.replace_file(tx, existing, new, file_id, origin)
        await stored_files.remove_replaced(tx, existing.file_id)
    await stored_files.keep(tx, file_id)
    await _enqueue(tx, document)
    return document


async def _find_replaced(tx: Transaction, new: NewFile, of_source: Document | None) -> Document | None:
    """Return the document of which this file is the next version, with its source, or None for a new one."""
    if of_source is not None and of_source.sha256 == new.sha256:
        return of_source
    # One of the same bytes would have been found before, unless it has failed with them.
    failed = await queries.find_by_sha256(tx, new.sha256)
    if failed is not None:
        return await _move_source(tx, of_source, failed, new)
    if of_source is None or new.source is None or len(of_source.sources) == 1:
        return of_source
    await queries.remove_source(tx, of_source, new.source)
    return None


async def _enqueue(tx: Transaction, document: Document) -> None:
    versions = {document.id: document.version}
    await job_queries.enqueue(tx, document.tenant, RecordKind.DOCUMENT, PARSE_DOCUMENT, versions)
