"""Points: how a record stands in Qdrant.

A point is one version of one record: its id derives from tenant, kind, ref and version, so a
late write can't overwrite a newer one; it merely leaves a point that readers drop (they know
the row's version) and the sweep removes. The keyword part is written first, by whoever saved;
the vector is added to that point later, never by writing the point again.
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
_BULK = 20.0  # seconds: workers write many points in one call


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A record as the index sees it.

    `text` is what keywords are taken from, `passage` what is embedded; `filters` is the
    payload that searches filter on, besides the tenant.
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
    """Write the keyword points of documents; a reader finds them when this returns."""
    points = [_point(document) for document in documents]
    async with qdrant.call_guard(timeout=_BULK if bulk else None):
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
    """Add embeddings to points that are there.

    Raises PointNotFound when one is not, and RequestRefused for what Qdrant won't do at all, as with
    vectors of another size than the collection's.
    """
    points = [models.PointVectors(id=doc.point_id, vector={DENSE: vector}) for doc, vector in vectors]
    try:
        async with qdrant.call_guard(timeout=_BULK):
            await qdrant.client.update_vectors(collection, points, wait=True)
    except UnexpectedResponse as refusal:
        raise RequestRefused(f"qdrant refused the vectors: status {refusal.status_code}") from refusal


async def remove(
    qdrant: Qdrant, collection: str, tenant: str, record_id: str, *, except_version: str | None = None
) -> None:
    """Delete a record's points, or those of its other versions than one."""
    keep: list[models.Condition] = [models.HasIdCondition(has_id=[except_version])] if except_version else []
    condition = models.Filter(
        must=[*tenant_condition(tenant), field_equals("record_id", record_id)], must_not=keep or None
    )
    async with qdrant.call_guard(timeout=_BULK):
        await qdrant.client.delete(collection, models.FilterSelector(filter=condition), wait=True)


async def remove_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> None:
    """Delete points by id."""
    async with qdrant.call_guard(timeout=_BULK):
        await qdrant.client.delete(collection, models.PointIdsList(points=list(ids)), wait=True)


async def remove_expired(qdrant: Qdrant, collection: str, now: datetime) -> int:
    """Delete the points of records that expired before `now`; return how many there were."""
    expired = models.Filter(
        must=[models.FieldCondition(key="expires_at", range=models.DatetimeRange(lt=now))]
    )
    async with qdrant.call_guard(timeout=_BULK):
        count = (await qdrant.client.count(collection, count_filter=expired, exact=True)).count
        if count:
            await qdrant.client.delete(collection, models.FilterSelector(filter=expired), wait=True)
    return count


async def existing_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> set[str]:
    """Return which of these points are there."""
    async with qdrant.call_guard(timeout=_BULK):
        records = await qdrant.client.retrieve(collection, ids, with_payload=False, with_vectors=False)
    return {str(record.id) for record in records}


@dataclass(frozen=True, slots=True)
class Page:
    """Some points of a collection, as (id, tenant, ref, version), and where the next page begins."""

    points: list[tuple[str, str, str, int]]
    next_offset: Any


async def scroll(qdrant: Qdrant, collection: str, offset: Any, limit: int) -> Page:
    """Read a page of what the index holds."""
    async with qdrant.call_guard(timeout=_BULK):
        records, following = await qdrant.client.scroll(
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
    return Page(points, following)
