"""Embed the texts of records: from the cache, else by the model, and tell which texts can't be embedded.

If the model refuses a batch or answers it with nonsense, the batch is halved until the text is found that
is to blame. Whether a text is to blame is decided by a control text: if the model can't embed that either,
the endpoint is not what was configured, and all texts wait.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.infra.embedder import Embedder, Vector
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from shared.search.index import embedding_cache
from shared.search.index.points import IndexDocument

DocumentKey = tuple[str, RecordKind, str]  # tenant, kind, record id
TextKey = tuple[str, str]  # tenant, embedding text
Refusal = errors.OverBudget | errors.InvalidModelReply
_CONTROL_TEXT = "control"
_MAX_HALVINGS = 5


async def embed_texts(
    resources: Resources,
    embedder: Embedder,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
) -> tuple[dict[TextKey, Vector], dict[TextKey, Refusal]]:
    """Return the vectors of the documents' texts, and why others have none: a budget, or the text itself.

    Raises errors.Unavailable if the endpoint fails, or answers nothing that can be used.
    """
    batch = list(documents_by_key.values())
    vectors = await _find_cached(resources, embedder, batch)
    payers = {
        key: _payer(document)
        for document in batch
        if (key := (document.tenant, document.embedding_text)) not in vectors
    }
    call = _Embedding(resources, embedder, jobs, documents_by_key, payers, vectors)
    for keys in _batches(list(payers), embedder.batch_size):
        await call.embed(keys)
    return call.vectors, call.refusals


@dataclass(slots=True)
class _Embedding:
    """The texts to embed with who pays for them, and the results so far."""

    resources: Resources
    embedder: Embedder
    jobs: Sequence[Job]
    documents_by_key: Mapping[DocumentKey, IndexDocument]
    payers: dict[TextKey, Payer]
    vectors: dict[TextKey, Vector]
    refusals: dict[TextKey, Refusal] = field(default_factory=dict)

    async def embed(self, keys: list[TextKey]) -> None:
        """Embed texts in one call, or in smaller ones if that is refused."""
        try:
            await self._call(keys, [key[1] for key in keys])
        except errors.InvalidModelReply as error:
            await self._require_control(error)
            await self._embed_apart(keys, error)

    async def _embed_apart(self, keys: list[TextKey], error: errors.InvalidModelReply) -> None:
        """Embed the halves of texts that were refused together, until each stands alone."""
        if len(keys) == 1:
            await self._embed_single(keys[0], error)
            return
        middle = len(keys) // 2
        for half in (keys[:middle], keys[middle:]):
            try:
                await self._call(half, [key[1] for key in half])
            except errors.InvalidModelReply as half_error:
                await self._embed_apart(half, half_error)

    async def _embed_single(self, key: TextKey, error: errors.InvalidModelReply) -> None:
        """Embed the beginning of a text that is too long; ask once more about any other; then give up."""
        text = key[1]
        for _ in range(_MAX_HALVINGS if isinstance(error, errors.PromptTooLong) else 1):
            if isinstance(error, errors.PromptTooLong):
                text = text[: max(1, len(text) // 2)]
            try:
                await self._call([key], [text])
            except errors.InvalidModelReply as next_error:
                error = next_error
            else:
                return
        await self._require_control(error)
        self.refusals[key] = error

    async def _require_control(self, error: errors.InvalidModelReply) -> None:
        """Raise errors.Unavailable if the model can't embed anything."""
        try:
            await self.embedder.embed_batch([_CONTROL_TEXT])
        except errors.InvalidModelReply:
            raise errors.Unavailable("embedding endpoint", str(error)) from error

    async def _call(self, keys: list[TextKey], texts: list[str]) -> None:
        paid_texts = [(self.payers[key], text) for key, text in zip(keys, texts, strict=True)]
        outcomes = await metered_calls.embed(self.resources, self.embedder, paid_texts)
        new_vectors: dict[TextKey, Vector] = {}
        for key, outcome in zip(keys, outcomes, strict=True):
            if isinstance(outcome, errors.OverBudget):
                self.refusals[key] = outcome
            else:
                new_vectors[key] = outcome
        # Before the next call: if that fails, these texts are not paid for a second time.
        await _cache(self.resources, self.embedder, self.jobs, self.documents_by_key, new_vectors)
        self.vectors |= new_vectors


async def _find_cached(
    resources: Resources, embedder: Embedder, batch: Sequence[IndexDocument]
) -> dict[TextKey, Vector]:
    texts_by_tenant: dict[str, set[str]] = {}
    for document in batch:
        texts_by_tenant.setdefault(document.tenant, set()).add(document.embedding_text)
    vectors: dict[TextKey, Vector] = {}
    name, dimension = await embedder.name(), await embedder.dimension()
    for tenant, texts in texts_by_tenant.items():
        async with resources.postgres.for_tenant(tenant) as tx:
            cached_vectors = await embedding_cache.find(tx, name, dimension, sorted(texts))
        vectors |= {(tenant, text): vector for text, vector in cached_vectors.items()}
    return vectors


def _payer(document: IndexDocument) -> Payer:
    """Return who pays for a document's embedding: the tenant alone for working memory, which has no agent."""
    agent_id, user_id = document.filters.get("agent_id"), document.filters.get("user_id")
    return Payer(document.tenant, agent_id, user_id or None, Purpose.EMBEDDING)


def _batches(keys: list[TextKey], size: int) -> Iterator[list[TextKey]]:
    return (keys[start : start + size] for start in range(0, len(keys), size))


async def _cache(
    resources: Resources,
    embedder: Embedder,
    jobs: Sequence[Job],
    documents_by_key: Mapping[DocumentKey, IndexDocument],
    vectors: Mapping[TextKey, Vector],
) -> None:
    """Keep the vectors of records that still are what was read.

    The claim of a job ends when its record is changed or deleted. A vector that was kept afterwards would
    outlive its text. Working memory ends by itself, so its vectors are not kept.
    """
    for tenant in {tenant for tenant, _ in vectors}:
        tenant_jobs = [job for job in jobs if job.tenant == tenant and job.kind is not RecordKind.WORKING]
        async with resources.postgres.for_tenant(tenant) as tx:
            valid_jobs = await job_queries.lock_valid(tx, tenant_jobs)
            keys = [(job.tenant, job.kind, job.record_id) for job in valid_jobs]
            texts = {documents_by_key[key].embedding_text for key in keys if key in documents_by_key}
            by_text = {text: vector for (owner, text), vector in vectors.items() if owner == tenant}
            kept = {text: vector for text, vector in by_text.items() if text in texts}
            await embedding_cache.save(tx, await embedder.name(), kept)
