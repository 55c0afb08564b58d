"""Documents of the tenant: upload files, see what becomes of them, and search their text with citations."""

from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import Field

from services.gateway import responses
from services.gateway.api_model import ApiModel, Count, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import (
    Cursor,
    Limit,
    ReadCaller,
    ResourcesDep,
    StreamKeyDep,
    WriteCaller,
)
from services.gateway.multipart_upload import receive_file
from services.gateway.response_models import DeletedRecord, Page
from services.gateway.responses import JsonResponse
from shared.foundation.origin import Origin
from shared.lifecycle import delete_document as document_deletion
from shared.lifecycle import upload_document as document_upload
from shared.memory.documents import read, search
from shared.memory.documents.document import MAX_NAME_CHARACTERS, Document, DocumentState, UploadedDocument

router = authenticated_router(prefix="/v1/documents", tags=["documents"])
_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "At most 25 MiB."},
                        "title": {"type": "string", "maxLength": 512},
                        "source": {
                            "type": "string",
                            "maxLength": 512,
                            "description": "Where it comes from; if not given, the name of the file."
                            " Another file from there replaces its text.",
                        },
                        "trust": {
                            "type": "string",
                            "description": "Lowers the trust that the server gives, which is `outside`.",
                        },
                    },
                }
            }
        },
    }
}


Source = Annotated[str | None, Query(max_length=MAX_NAME_CHARACTERS, description="One of its sources.")]


class DocumentSearchBody(ApiModel):
    """A search in documents."""

    model_config = example({"query": "When does the fiscal year begin?"})

    query: Annotated[str, Field(min_length=1, max_length=16_000)]
    limit: Annotated[Count, Field(ge=1, le=100)] = 10


class PassageResponse(ApiModel):
    """A passage and where it stands. One of the business context has the title `agent.md` and no document."""

    text: str
    document_id: str | None
    title: str
    page: int | None
    line_from: int | None
    line_to: int | None
    score: float
    origin: Origin


class DeletedDocumentResponse(DeletedRecord):
    """Whether there was a document or a source to delete, and whether anything is left that nobody finds.

    The receipt of a deleted document is read at `/v1/erasures/{erasure_id}`.
    """

    state: Literal["pending", "done"]
    erasure_id: str | None


class FoundPassages(ApiModel):
    """The passages that a search found, best first; what ran, and what was missing."""

    results: list[PassageResponse]
    stages: list[str]
    degraded: list[str]
    next_cursor: str | None = None


@router.post("", status_code=HTTPStatus.ACCEPTED, response_model=UploadedDocument, openapi_extra=_FORM)
async def upload_document(
    resources: ResourcesDep, caller: WriteCaller, request: Request, idempotency_key: StreamKeyDep
) -> JsonResponse:
    """Upload a file of at most 25 MiB. A worker parses it; `state` and `progress` tell how far it is.

    Only an unbound key may. The same bytes give the same document, also from another `source`, which is then
    one of its `other_sources`; another file with the same `source` replaces its text, of which the earlier
    one is found until then: `replaced` names it. Without `source`, the name of the file is the source. A
    document that has failed is tried again.
    """
    document_upload.require_right(caller)
    with NamedTemporaryFile(prefix="loci-upload-") as file:
        new = await receive_file(request, file, Path(file.name))
        document = await document_upload.upload(resources, caller, new, idempotency_key)
    return JsonResponse(document, HTTPStatus.ACCEPTED)


@router.get("", response_model=Page[Document])
async def list_documents(
    resources: ResourcesDep,
    caller: ReadCaller,
    state: DocumentState | None = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List documents, the newest first: all, or those in a state."""
    after = responses.decode_cursor(cursor)
    rows = await read.list_documents(resources, caller, limit + 1, after, state)
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.get("/{document_id}", response_model=Document)
async def get_document(resources: ResourcesDep, caller: ReadCaller, document_id: str) -> JsonResponse:
    """Read what a document is, how far it is, and if it has failed, why."""
    document = await read.get_document(resources, caller, document_id)
    return JsonResponse(document.model_dump(mode="json"))


@router.delete(
    "/{document_id}",
    response_model=DeletedDocumentResponse,
    responses={202: {"model": DeletedDocumentResponse, "description": "A job removes what is left."}},
)
async def delete_document(
    resources: ResourcesDep, caller: WriteCaller, document_id: str, source: Source = None
) -> JsonResponse:
    """Delete a document for good, with its file and all its text. Only an unbound key may.

    With `source`, only what comes from there: a document that has other sources stays with these. From the
    answer on nobody finds it; what is left of a long one is removed by a job, and the status is 202.
    """
    deleted = await document_deletion.delete_document(resources, caller, document_id, source)
    status = HTTPStatus.OK if deleted.state == "done" else HTTPStatus.ACCEPTED
    return JsonResponse(asdict(deleted), status)


@router.post("/search", response_model=FoundPassages)
async def search_documents(
    resources: ResourcesDep, caller: ReadCaller, body: DocumentSearchBody
) -> JsonResponse:
    """Search the text of documents, by keywords and meaning. Each passage says where it stands.

    Passages of the business context, `agent.md`, come first.
    """
    found = await search.search(resources, caller, body.query, body.limit)
    results = [passage.to_json() for passage in found.results]
    content = {"results": results, "stages": found.stages, "degraded": found.degraded, "next_cursor": None}
    return JsonResponse(content)
