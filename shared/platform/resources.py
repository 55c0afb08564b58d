"""The composition root: open all clients when a process starts and close them when it ends.

The gateway, every worker, the command line and the tests get their clients here.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import redis.asyncio

from shared.foundation import config
from shared.infra.broker import TaskPublisher
from shared.infra.cross_encoder import CrossEncoder, open_cross_encoder
from shared.infra.embedder import Embedder, open_embedder
from shared.infra.language_model import LanguageModel, open_judge_model, open_language_model
from shared.infra.object_storage import ObjectStorage, open_object_storage
from shared.infra.postgres import Postgres
from shared.infra.qdrant import Qdrant
from shared.infra.redis import open_redis
from shared.records.transaction import RecordTransaction, begin
from shared.search.index.client import SearchIndex
from shared.search.index.missing_points import MissingPoints
from shared.search.index.writer import IndexWriter


@dataclass(frozen=True, slots=True)
class Resources:
    """The settings and the clients of everything outside this process."""

    settings: config.Settings
    postgres: Postgres
    redis: redis.asyncio.Redis
    qdrant: Qdrant
    embedder: Embedder | None
    language_model: LanguageModel | None
    judge_model: LanguageModel | None
    cross_encoder: CrossEncoder | None
    object_storage: ObjectStorage | None
    publisher: TaskPublisher
    search_index: SearchIndex
    index_writer: IndexWriter

    def transaction(self, tenant: str) -> AbstractAsyncContextManager[RecordTransaction]:
        """Open a transaction over the records of a tenant; what follows from it is done after the commit."""
        return begin(self.postgres, self.index_writer, self.publisher, tenant)


@asynccontextmanager
async def open_resources(settings: config.Settings) -> AsyncIterator[Resources]:
    """Open the clients, and close them in reverse order. None connects before it is first used."""
    async with AsyncExitStack() as closing:
        postgres = Postgres(settings)
        closing.push_async_callback(postgres.close)
        redis_client = open_redis(settings)
        closing.push_async_callback(redis_client.aclose)
        qdrant = Qdrant(settings)
        closing.push_async_callback(qdrant.close)
        embedder, model = open_embedder(settings), open_language_model(settings)
        judge_model = open_judge_model(settings, model)
        own_judge_model = None if judge_model is model else judge_model
        cross_encoder = open_cross_encoder(settings)
        for client in (embedder, model, own_judge_model, cross_encoder):
            if client is not None:
                closing.push_async_callback(client.close)
        publisher = TaskPublisher(settings)
        closing.callback(publisher.close)
        missing_points = MissingPoints(postgres)
        writer = IndexWriter(postgres, qdrant, publisher, missing_points)
        closing.push_async_callback(writer.close)
        index = SearchIndex(
            *(postgres, qdrant, embedder, settings.search_candidates, settings.search_recent_seconds),
            missing_points,
            settings.model_probe_interval,
        )
        yield Resources(
            settings=settings,
            postgres=postgres,
            redis=redis_client,
            qdrant=qdrant,
            embedder=embedder,
            language_model=model,
            judge_model=judge_model,
            cross_encoder=cross_encoder,
            object_storage=open_object_storage(settings),
            publisher=publisher,
            search_index=index,
            index_writer=writer,
        )
