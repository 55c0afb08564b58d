"""Write, read and delete the points of records in Qdrant.

A point is one version of one record. Its id is derived from tenant, kind, record id and version, so a late
write cannot overwrite a newer version. It only leaves a point that searches ignore, because they compare
versions with the database, and that the sweep deletes. The process that saves a record writes the keyword
part of its point. The vector is added to that point later; the point is never written again.

Several processes may write one record at the same time, in any order. So nobody deletes "the others": a
writer deletes the points of versions older than its own, a deletion those up to the deleted version. That
works because a version is never used again, even if a record is deleted and created anew under its id.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import uuid_utils

from shared.foundation.stages import RecordKind
from shared.infra.embedder import Vector
from shared.infra.qdrant import ErrorStatus, Json, Qdrant, RequestRefused
from shared.jobs.job import Job
from shared.search.index import filters
from shared.search.index.filters import Condition, tenant_condition, to_payload_time
from shared.search.text import bm25

_NAMESPACE = uuid_utils.UUID("6f1ff3ab-9dc4-4f0b-8cf7-0e3b5a7c1d10")
DENSE, KEYWORDS = "dense", "bm25"
BULK_TIMEOUT_SECONDS = 20.0
"""The timeout of calls over many points, which only workers make."""
_RECORDS_PER_FILTER = 100
_MAX_CHARS_PER_CALL = 100_000
_DELETED_PER_FILTER = 1000


@dataclass(frozen=True, slots=True)
class IndexDocument:
    """A record as the index sees it: the text for keywords, the text that is embedded, and the filters.

    `filters` is the payload that searches filter on, except for the tenant. `may_replace` is false for a
    version that can have no older ones, so that nothing is deleted when it is written.
    """

    tenant: str
    kind: RecordKind
    record_id: str
    version: int
    keyword_text: str
    embedding_text: str
    filters: dict[str, Any] = field(default_factory=dict)
    may_replace: bool = True

    @property
    def point_id(self) -> str:
        """The id of this version's point."""
        return point_id(self.tenant, self.kind, self.record_id, self.version)


def point_id(tenant: str, kind: RecordKind, record_id: str, version: int) -> str:
    """Return the id of the point of one version of a record."""
    return str(uuid_utils.uuid5(_NAMESPACE, f"{tenant}\x1f{kind}\x1f{record_id}\x1f{version}"))


async def write_records(
    qdrant: Qdrant,
    collection: str,
    documents: Sequence[IndexDocument],
    deleted_jobs: Sequence[Job],
    *,
    bulk: bool = False,
) -> None:
    """Make the index agree with records: the documents of those that exist, the jobs of deleted ones.

    The points of a deleted record go as far as their versions are lower than that of its job.
    """
    if documents:
        await upsert_points(qdrant, collection, documents, bulk=bulk)
        await remove_older(qdrant, collection, documents)
    for tenant in {job.tenant for job in deleted_jobs}:
        versions = {job.record_id: job.version for job in deleted_jobs if job.tenant == tenant}
        await remove_deleted(qdrant, collection, tenant, versions)


async def upsert_points(
    qdrant: Qdrant, collection: str, documents: Sequence[IndexDocument], *, bulk: bool = False
) -> None:
    """Write the keyword points of documents; searches find them as soon as this returns.

    To count the words of long texts keeps the process busy, so other requests have their turn between calls.
    """
    for part in _parts(documents):
        points = [_point(document) for document in part]
        async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS if bulk else None):
            await qdrant.call("PUT", f"collections/{collection}/points?wait=true", {"points": points})


def _parts(documents: Sequence[IndexDocument]) -> Iterator[list[IndexDocument]]:
    """Divide documents into parts of about `_MAX_CHARS_PER_CALL` characters or one document."""
    part: list[IndexDocument] = []
    chars = 0
    for document in documents:
        if part and chars + len(document.keyword_text) > _MAX_CHARS_PER_CALL:
            yield part
            part, chars = [], 0
        part.append(document)
        chars += len(document.keyword_text)
    if part:
        yield part


def _point(document: IndexDocument) -> Json:
    terms = bm25.document_vector(document.keyword_text)
    payload = {
        "tenant": document.tenant,
        "record_id": document.record_id,
        "version": document.version,
        "written_at": to_payload_time(datetime.now(UTC)),
    } | document.filters
    vector = {"indices": list(terms.indices), "values": list(terms.values)}
    return {"id": document.point_id, "vector": {KEYWORDS: vector}, "payload": payload}


async def add_vectors(
    qdrant: Qdrant, collection: str, vectors: Sequence[tuple[IndexDocument, Vector]]
) -> None:
    """Add embeddings to existing points.

    Raises PointNotFound if one of the points does not exist, and RequestRefused if Qdrant refuses the
    request, for example because the vectors have another size than those of the collection.
    """
    points = [{"id": document.point_id, "vector": {DENSE: vector}} for document, vector in vectors]
    try:
        async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
            await qdrant.call("PUT", f"collections/{collection}/points/vectors?wait=true", {"points": points})
    except ErrorStatus as error:
        raise RequestRefused(f"qdrant refused the vectors: status {error.status}") from error


async def remove_older(qdrant: Qdrant, collection: str, documents: Sequence[IndexDocument]) -> None:
    """Delete the points of versions that are older than these documents."""
    by_tenant: dict[str, list[Condition]] = {}
    for document in documents:
        if document.may_replace:
            condition = filters.all_of(_older_versions([document.record_id], document.version))
            by_tenant.setdefault(document.tenant, []).append(condition)
    for tenant, conditions in by_tenant.items():
        for start in range(0, len(conditions), _RECORDS_PER_FILTER):
            is_any = filters.any_of(conditions[start : start + _RECORDS_PER_FILTER])
            await _remove_matching(qdrant, collection, [*tenant_condition(tenant), is_any])


async def remove_deleted(qdrant: Qdrant, collection: str, tenant: str, versions: Mapping[str, int]) -> None:
    """Delete the points of deleted records, given as record id → first version that is not to be deleted.

    Records are deleted together up to the highest of these versions. That spares a record that was
    created anew under its id, because its versions are higher than all that existed before.
    """
    record_ids = list(versions)
    for start in range(0, len(record_ids), _DELETED_PER_FILTER):
        some = record_ids[start : start + _DELETED_PER_FILTER]
        older = _older_versions(some, max(versions[record_id] for record_id in some))
        await _remove_matching(qdrant, collection, [*tenant_condition(tenant), *older])


def _older_versions(record_ids: Sequence[str], version: int) -> list[Condition]:
    return [filters.is_record(record_ids), filters.is_less("version", version)]


async def _remove_matching(qdrant: Qdrant, collection: str, conditions: Sequence[Condition]) -> None:
    await _remove(qdrant, collection, {"filter": filters.all_of(conditions)})


async def remove_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> None:
    """Delete points by their ids."""
    await _remove(qdrant, collection, {"points": list(ids)})


async def _remove(qdrant: Qdrant, collection: str, selector: Json) -> None:
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        await qdrant.call("POST", f"collections/{collection}/points/delete?wait=true", selector)


async def remove_expired(qdrant: Qdrant, collection: str, now: datetime) -> int:
    """Delete the points of records that expired before `now`; return their number."""
    is_expired = [filters.is_earlier_than("expires_at", now)]
    body = {"filter": filters.all_of(is_expired), "exact": True}
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        count = int((await qdrant.call("POST", f"collections/{collection}/points/count", body))["count"])
    if count:
        await _remove_matching(qdrant, collection, is_expired)
    return count


async def existing_ids(qdrant: Qdrant, collection: str, ids: Sequence[str]) -> set[str]:
    """Return the ids of those points that exist."""
    body = {"ids": list(ids), "with_payload": False, "with_vector": False}
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        records = await qdrant.call("POST", f"collections/{collection}/points", body)
    return {str(record["id"]) for record in records}


async def sample_vectors(qdrant: Qdrant, collection: str, limit: int) -> list[Vector]:
    """Return the embeddings of the first `limit` points, without those that have none yet."""
    body = {"limit": limit, "with_payload": False, "with_vector": [DENSE]}
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        found = await qdrant.call("POST", f"collections/{collection}/points/scroll", body)
    vectors = [(record.get("vector") or {}).get(DENSE) for record in found["points"]]
    return [vector for vector in vectors if vector]


@dataclass(frozen=True, slots=True)
class Page:
    """Some points of a collection as (id, tenant, record id, version), and the offset of the next page."""

    points: list[tuple[str, str, str, int]]
    next_offset: Any


async def scroll(qdrant: Qdrant, collection: str, offset: Any, limit: int) -> Page:
    """Return a page of at most `limit` points of a collection; the first page has the offset None."""
    body: Json = {"limit": limit, "with_payload": ["tenant", "record_id", "version"], "with_vector": False}
    if offset is not None:
        body["offset"] = offset
    async with qdrant.call_guard(timeout=BULK_TIMEOUT_SECONDS):
        found = await qdrant.call("POST", f"collections/{collection}/points/scroll", body)
    points = [
        (str(record["id"]), *(record["payload"][name] for name in ("tenant", "record_id", "version")))
        for record in found["points"]
        if record.get("payload")
    ]
    return Page(points, found.get("next_page_offset"))
