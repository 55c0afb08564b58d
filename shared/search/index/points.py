"""Write, read and delete the points of records in Qdrant.

A point is one version of one record. Its id is derived from tenant, kind, record id and version, so a late
write cannot overwrite a newer version. It only leaves a point that searches ignore, because they compare
versions with the database, and that the sweep deletes. The process that saves a record writes the keyword
part of its point. The vector is added to that point later; the point is never written again.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from qdrant_client import models
from qdrant_client.http.exceptions import UnexpectedResponse

from shared.foundation.stages import RecordKind
from shared.infra.embedder import Vector
from shared.infra.qdrant import Qdrant, RequestRefused
from shared.search.index.filters import field_equals, tenant_condition
from shared.search.text import bm25

_NAMESPACE = uuid.UUID("6f1ff3ab-9dc4-4f0b-8cf7-0e3b5a7c1d10")
DENSE, KEYWORDS = "dense", "bm25"
BULK_TIMEOUT_SECONDS = 20.0
"""The timeout of calls over many points, which only workers make."""


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A record as the index sees it: the text for keywords, the text that is embedded, and the filters.

    `filters` is the payload that searches filter on, except for the tenant.
    """

    tenant: str
    kind: RecordKind
    record_id: str
    version: int
    keyword_text: str
    embedding_text: str
    filters: dict[str, Any] = field(default_factory=dict)

    @property
    def point_id(self) -> str:
        """The id of this version's point."""
        return point_id(self.tenant, self.kind, self.record_id, self.version)


def point_id(tenant: str, kind: RecordKind, record_id: str, version: int) -> str:
    """Return the id of the point of one version of a record."""
    return str(uuid.uuid5(_NAMESPACE, f"{tenant}\x1f{kind}\x1f{record_id}\x1f{version}"))


async def upsert_points(
    qdrant: Qdrant, collection: str, documents: Sequence[IndexDocument], *, bulk: bool = False
) -> None:
    """Write the keyword points of documents; searches find them as soon as this returns."""
    points = [_point(document) for document in documents]
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS if bulk else None):
        await qdrant.client.upsert(collection, points, wait=True)


def _point(document: IndexDocument) -> models.PointStruct:
    terms = bm25.document_vector(document.keyword_text)
    payload = {
        "tenant": document.tenant,
        "record_id": document.record_id,
        "version": document.version,
    } | document.filters
    vector = models.SparseVector(indices=list(terms.indices), values=list(terms.values))
    return models.PointStruct(id=document.point_id, vector={KEYWORDS: vector}, payload=payload)


async def add_vectors(
    qdrant: Qdrant, collection: str, vectors: Sequence[tuple[IndexDocument, Vector]]
) -> None:
    """Add embeddings to existing points.

    Raises PointNotFound if one of the points does not exist, and RequestRefused if Qdrant refuses the
    request, for example because the vectors have another size than those of the collection.
    """
    points = [models.PointVectors(id=doc.point_id, vector={DENSE: vector}) for doc, vector in vectors]
    try:
        async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
            await qdrant.client.update_vectors(collection, points, wait=True)
    except UnexpectedResponse as error:
        raise RequestRefused(f"qdrant refused the vectors: status {error.status_code}") from error


async def remove(
    qdrant: Qdrant, collection: str, tenant: str, record_id: str, *, except_version: str | None = None
) -> None:
    """Delete the points of all versions of a record, except that with the point id `except_version`."""
    must_not: list[models.Condition] = (
        [models.HasIdCondition(has_id=[except_version])] if except_version else []
    )
    condition = models.Filter(
        must=[*tenant_condition(tenant), field_equals("record_id", record_id)], must_not=must_not or None
    )
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.client.delete(collection, models.FilterSelector(filter=condition), wait=True)


async def remove_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> None:
    """Delete points by their ids."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.client.delete(collection, models.PointIdsList(points=list(ids)), wait=True)


async def remove_expired(qdrant: Qdrant, collection: str, now: datetime) -> int:
    """Delete the points of records that expired before `now`; return their number."""
    is_expired = models.Filter(
        must=[models.FieldCondition(key="expires_at", range=models.DatetimeRange(lt=now))]
    )
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        count = (await qdrant.client.count(collection, count_filter=is_expired, exact=True)).count
        if count:
            await qdrant.client.delete(collection, models.FilterSelector(filter=is_expired), wait=True)
    return count


async def existing_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> set[str]:
    """Return the ids of those points that exist."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        records = await qdrant.client.retrieve(collection, ids, with_payload=False, with_vectors=False)
    return {str(record.id) for record in records}


@dataclass(frozen=True, slots=True)
class Page:
    """Some points of a collection as (id, tenant, record id, version), and the offset of the next page."""

    points: list[tuple[str, str, str, int]]
    next_offset: Any


async def scroll(qdrant: Qdrant, collection: str, offset: Any, limit: int) -> Page:
    """Return a page of at most `limit` points of a collection; the first page has the offset None."""
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        records, next_offset = await qdrant.client.scroll(
            collection,
            limit=limit,
            offset=offset,
            with_payload=["tenant", "record_id", "version"],
            with_vectors=False,
        )
    points = [
        (str(r.id), r.payload["tenant"], r.payload["record_id"], r.payload["version"])
        for r in records
        if r.payload
    ]
    return Page(points, next_offset)
