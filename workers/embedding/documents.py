"""Load the index documents of the records that jobs are about, of any kind and tenant."""

from collections.abc import Sequence

from shared.foundation.stages import RecordKind
from shared.jobs.job import Job
from shared.lifecycle.kinds import KINDS
from shared.platform.resources import Resources
from shared.search.index.points import IndexDocument


async def load_documents(
    resources: Resources, jobs: Sequence[Job]
) -> dict[tuple[str, RecordKind, str], IndexDocument]:
    """Return the documents of the records that still exist, by (tenant, kind, record id)."""
    documents_by_key: dict[tuple[str, RecordKind, str], IndexDocument] = {}
    for (tenant, kind), record_ids in _group(jobs).items():
        for document in await KINDS[kind].load_documents(resources, tenant, record_ids):
            documents_by_key[(tenant, kind, document.record_id)] = document
    return documents_by_key


def _group(jobs: Sequence[Job]) -> dict[tuple[str, RecordKind], list[str]]:
    groups: dict[tuple[str, RecordKind], list[str]] = {}
    for job in jobs:
        groups.setdefault((job.tenant, job.kind), []).append(job.record_id)
    return groups
