"""A collection: one shard of the engine in one folder.

Calls never overlap, because the server runs on one thread, so there are no locks.

A payload index takes the engine 2 ms, and a collection has about twenty. So the indexes of a new collection
are written down, and built when its first points arrive: most kinds of records are never used.
"""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import qdrant_edge as edge

from services.local.vectors import points, queries, schema
from services.local.vectors.refusal import refused
from services.local.vectors.writes import Write

_DUE_INDEXES = "due-indexes.ndjson"


class Collection:
    """An open shard and the schema it was created with."""

    def __init__(self, shard: edge.EdgeShard, definition: dict[str, Any], due_indexes: Path) -> None:
        """Take an open shard. The file has the requests of indexes to build, if there is one."""
        self._shard = shard
        self._definition = definition
        self._due_indexes: Path | None = due_indexes if due_indexes.exists() else None
        self.unsaved = 0
        self._may_need_tidying = True

    @classmethod
    def create(cls, folder: Path, definition: dict[str, Any]) -> "Collection":
        """Create an empty collection in a new folder. If the engine fails, the folder is removed."""
        folder.mkdir(parents=True)
        try:
            with refused("body"):
                shard = edge.EdgeShard.create(str(folder), schema.engine_config(definition))
            (folder / _DUE_INDEXES).touch()
            return cls(shard, definition, folder / _DUE_INDEXES)
        except BaseException:
            # The next collection gets the same folder.
            shutil.rmtree(folder)
            raise

    @classmethod
    def load(cls, folder: Path, definition: dict[str, Any]) -> "Collection":
        """Open a collection; acknowledged writes that were not saved yet are read from the engine's log."""
        collection = cls(edge.EdgeShard.load(str(folder)), definition, folder / _DUE_INDEXES)
        collection.tidy()
        return collection

    def add_index(self, body: Any) -> dict[str, Any]:
        """Build a payload index, or write it down until there are points. Raises Invalid."""
        write = schema.read_index(body)
        if self._due_indexes is None:
            return self.write(write)
        with self._due_indexes.open("ab") as file:
            file.write(b"\n" + orjson.dumps(body))
            file.flush()
            os.fsync(file.fileno())
        return {"status": "completed"}

    def _build_due_indexes(self) -> None:
        """Build the indexes that were written down. After a crash they are built once more, without harm."""
        if self._due_indexes is None:
            return
        file, self._due_indexes = self._due_indexes, None
        for line in filter(None, file.read_bytes().split(b"\n")):
            with suppress(orjson.JSONDecodeError):  # cut off by a crash, and never acknowledged
                self.write(schema.read_index(orjson.loads(line)))
        file.unlink()

    def write(self, write: Write) -> dict[str, Any]:
        """Apply a change so that it survives the end of this process. Raises NotFound or Invalid.

        If one of several points is missing, those before it are changed, as on a Qdrant server.
        """
        self._build_due_indexes()
        self.unsaved += write.point_count
        self._may_need_tidying = True
        with refused("body"):
            self._shard.update(write.operation)
        return {"status": "completed"}

    def search(self, request: edge.QueryRequest) -> dict[str, Any]:
        """Return the hits of one search."""
        with refused("query"):
            return {"points": [points.scored(hit) for hit in self._shard.query(request)]}

    def search_batch(self, requests: list[edge.QueryRequest]) -> list[dict[str, Any]]:
        """Return the hits of several searches, in the order of the requests."""
        with refused("searches"):
            hits_by_request = self._shard.query_batch(edge.QueryBatchRequest(queries=requests))
        return [{"points": [points.scored(hit) for hit in hits]} for hits in hits_by_request]

    def scroll(self, request: edge.ScrollRequest) -> dict[str, Any]:
        """Return a page of points and the id at which the next page starts."""
        with refused("scroll"):
            page, next_offset = self._shard.scroll(request)
        return {"points": [points.record(point) for point in page], "next_page_offset": next_offset}

    def count(self, request: edge.CountRequest) -> dict[str, int]:
        """Return the number of points."""
        with refused("count"):
            return {"count": self._shard.count(request)}

    def retrieve(self, retrieval: queries.Retrieval) -> list[dict[str, Any]]:
        """Return the requested points that exist."""
        with refused("ids"):
            existing_points = self._shard.retrieve(
                list(retrieval.ids), retrieval.with_payload, retrieval.with_vector
            )
        return [points.record(point) for point in existing_points]

    def info(self) -> dict[str, Any]:
        """Return the collection's description."""
        self._build_due_indexes()
        info = self._shard.info()
        return {
            "status": "green",
            "optimizer_status": "ok",
            "indexed_vectors_count": 0,
            "points_count": info.points_count,
            "segments_count": info.segments_count,
            "config": _describe_config(self._definition),
            "payload_schema": {name: _describe_index(index) for name, index in info.payload_schema.items()},
        }

    def save(self) -> None:
        """Sync all writes to disk. Takes 0.2 to 0.7 s with 100 000 points."""
        self._shard.flush()
        self.unsaved = 0

    def tidy(self) -> None:
        """Free the space of deleted points if they are a fifth of all; up to 3 s with 100 000 points."""
        if self._may_need_tidying and self._shard.optimize():
            # The engine closes the old files when it saves.
            self.save()
        self._may_need_tidying = False

    def close(self) -> None:
        """Save and close the files."""
        self._shard.close()


def _describe_config(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "params": {**definition, "shard_number": 1, "replication_factor": 1, "on_disk_payload": True},
        "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10_000},
        "optimizer_config": {"default_segment_number": 1, "flush_interval_sec": 2},
    }


def _describe_index(index: "edge.PayloadIndexInfo") -> dict[str, Any]:
    kind = str(index.data_type).rpartition(".")[2].lower()
    description: dict[str, Any] = {"data_type": kind, "points": index.points}
    if getattr(index.params, "is_tenant", None):
        description["params"] = {"type": kind, "is_tenant": True}
    return description
