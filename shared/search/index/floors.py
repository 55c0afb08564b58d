"""Learn the level of the cosine that unrelated records of a generation rarely reach.

Models differ: unrelated texts have a cosine near 0.1 with one and near 0.7 with another. So the level is
measured: the cosines of random pairs of records are nearly all those of unrelated texts, and the floor is
the cosine that one pair in 100 exceeds. Ids of points are hashes, so the first points are a random sample.
It is learnt from MIN_RECORDS records on, and again whenever there are twice as many. Where it is used, it is
at most the start value of the model (`shared/search/floor.py`).
"""

import asyncio
import random
from collections.abc import Sequence
from operator import mul

from shared.infra.embedder import Vector
from shared.infra.postgres import Postgres
from shared.infra.qdrant import Qdrant
from shared.search.floor import MIN_RECORDS
from shared.search.index import collections, generations, points
from shared.search.index.generations import Generation
from shared.search.text.indexed_text import direction

_SAMPLE = 400
_PAIRS = 4000
_QUANTILE = 0.99
_GROWTH = 2


async def learn_if_due(postgres: Postgres, qdrant: Qdrant, generation: Generation) -> bool:
    """Learn and store the floor of a generation if it has grown enough; return whether it was stored.

    A generation of keywords alone has no floor; stored is that it has enough records.
    """
    count = await collections.count(qdrant, generation.collection)
    if count < max(MIN_RECORDS, _GROWTH * generation.floor_points):
        return False
    floor = None
    if generation.model is not None:
        vectors = await points.sample_vectors(qdrant, generation.collection, _SAMPLE)
        if len(vectors) < MIN_RECORDS:
            return False
        floor = await asyncio.to_thread(unrelated_level, vectors)
    async with postgres.across_tenants() as tx:
        await generations.set_floor(tx, generation.id, floor, count)
    return True


def unrelated_level(vectors: Sequence[Vector]) -> float:
    """Return the cosine that one random pair in 100 exceeds."""
    draw = random.Random(0)  # noqa: S311 - a sample, no secret
    units = [direction(vector) for vector in vectors]
    pairs = (draw.sample(units, 2) for _ in range(_PAIRS))
    cosines = sorted(sum(map(mul, first, second)) for first, second in pairs)
    return float(cosines[int(_QUANTILE * _PAIRS)])
