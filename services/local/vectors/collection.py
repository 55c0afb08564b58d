"""A collection: one shard of the engine in one folder.

Every call runs to its end before the next one starts (see the package), so nothing is locked.
"""

from pathlib import Path
from typing import Any

import qdrant_edge as edge

from services.local.vectors import points, queries, schema
from services.local.vectors.refusal import refused
from services.local.vectors.writes import Write


class Collection:
    """An open shard and the schema it was made with."""

    def __init__(self, shard: edge.EdgeShard, definition: dict[str, Any]) -> None:
        self._shard = shard
        self._definition = definition
        self.unsaved = 0
        self._untidy = True

    @classmethod
    def create(cls, folder: Path, definition: dict[str, Any]) -> "Collection":
        """Make an empty collection in a new folder."""
        folder.mkdir(parents=True)
        with refused("body"):
            return cls(edge.EdgeShard.create(str(folder), schema.engine_config(definition)), definition)

    @classmethod
    def load(cls, folder: Path, definition: dict[str, Any]) -> "Collection":
        """Open a collection; what was acknowledged and not yet saved is read from the engine's log."""
        collection = cls(edge.EdgeShard.load(str(folder)), definition)
        collection.tidy()
        return collection

    def write(self, write: Write) -> dict[str, Any]:
        """Apply a change; it survives the death of this process. Raises NotFound, Invalid.

        Of several points the ones before a missing one are changed, as on the server.
        """
        self.unsaved += write.point_count
        self._untidy = True
        with refused("body"):
            self._shard.update(write.operation)
        return {"status": "completed"}

    def search(self, request: edge.QueryRequest) -> dict[str, Any]:
        """Return the hits of one search."""
        with refused("query"):
            return {"points": [points.scored(hit) for hit in self._shard.query(request)]}

    def search_batch(self, requests: list[edge.QueryRequest]) -> list[dict[str, Any]]:
        """Return the hits of several searches, in their order."""
        with refused("searches"):
            answers = self._shard.query_batch(edge.QueryBatchRequest(queries=requests))
        return [{"points": [points.scored(hit) for hit in hits]} for hits in answers]

    def scroll(self, request: edge.ScrollRequest) -> dict[str, Any]:
        """Return a page of points and the id where the next one starts."""
        with refused("scroll"):
            found, following = self._shard.scroll(request)
        return {"points": [points.record(point) for point in found], "next_page_offset": following}

    def count(self, request: edge.CountRequest) -> dict[str, int]:
        """Return the number of points."""
        with refused("count"):
            return {"count": self._shard.count(request)}

    def retrieve(self, wanted: queries.Retrieval) -> list[dict[str, Any]]:
        """Return the points that exist of those asked for."""
        with refused("ids"):
            found = self._shard.retrieve(list(wanted.ids), wanted.with_payload, wanted.with_vector)
        return [points.record(point) for point in found]

    def info(self) -> dict[str, Any]:
        """Return the collection's description."""
        info = self._shard.info()
        return {
            "status": "green",
            "optimizer_status": "ok",
            "indexed_vectors_count": 0,
            "points_count": info.points_count,
            "segments_count": info.segments_count,
            "config": _described(self._definition),
            "payload_schema": {name: _index(index) for name, index in info.payload_schema.items()},
        }

    def save(self) -> None:
        """Force everything to the disk; 0.2 to 0.7 s at 100 000 points."""
        self._shard.flush()
        self.unsaved = 0

    def tidy(self) -> None:
        """Drop the remains of deleted points once they are a fifth of all; up to 3 s at 100 000 points."""
        if self._untidy and self._shard.optimize():
            # The engine lets go of the old files when it saves.
            self.save()
        self._untidy = False

    def close(self) -> None:
        """Save and let go of the files."""
        self._shard.close()


def _described(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "params": {**definition, "shard_number": 1, "replication_factor": 1, "on_disk_payload": True},
        "hnsw_config": {"m": 0, "ef_construct": 100, "full_scan_threshold": 10_000},
        "optimizer_config": {"default_segment_number": 1, "flush_interval_sec": 2},
    }


def _index(index: "edge.PayloadIndexInfo") -> dict[str, Any]:
    kind = str(index.data_type).rpartition(".")[2].lower()
    described: dict[str, Any] = {"data_type": kind, "points": index.points}
    if getattr(index.params, "is_tenant", None):
        described["params"] = {"type": kind, "is_tenant": True}
    return described
