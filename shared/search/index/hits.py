"""Hits: the points that the channels of a search returned, each record once."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from shared.infra.qdrant import Json
from shared.search.index.points import DENSE, KEYWORDS

RECENT = "recent"
"""The name of the requests for recent points, beside those of the channels."""


class Hit(NamedTuple):
    """A record that a channel found: its id, the indexed version and the raw scores."""

    record_id: str
    version: int
    keyword: float | None
    cosine: float | None


def merge_channels(points_by_channel: Sequence[tuple[str, Sequence[Json]]]) -> list[Hit]:
    """Return a hit for each point of the channels, with its score in each."""
    scores: dict[str, dict[tuple[str, int], float]] = {KEYWORDS: {}, DENSE: {}}
    keys: dict[tuple[str, int], None] = {}
    for stage, points in points_by_channel:
        if stage != RECENT:
            found = {key_of(point): point["score"] for point in points if point.get("payload")}
            scores[stage] |= found
            keys |= dict.fromkeys(found)
    return [Hit(*key, scores[KEYWORDS].get(key), scores[DENSE].get(key)) for key in keys]


def key_of(point: Json) -> tuple[str, int]:
    """Return the record id and the version of a point."""
    return point["payload"]["record_id"], point["payload"]["version"]


def newest_versions(hits: Iterable[Hit]) -> list[Hit]:
    """Return one hit per record: a point of an older version may exist until it is removed."""
    newest: dict[str, Hit] = {}
    for hit in hits:
        if hit.record_id not in newest or newest[hit.record_id].version < hit.version:
            newest[hit.record_id] = hit
    return list(newest.values())
