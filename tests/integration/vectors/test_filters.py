"""Every kind of filter, checked by the points that it returns."""

import asyncio
import time
from datetime import UTC, datetime

import pytest
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.models import FieldCondition, Filter, HasIdCondition, MatchAny, MatchValue

from tests.integration.vectors.conftest import numbers, point_id, unit, words

pytestmark = pytest.mark.asyncio

_WAIT_SECONDS = 10

PAYLOADS = {
    1: {"tenant": "a", "tags": ["x", "y"], "n": 1, "weight": 0.5, "at": "2026-01-01T00:00:00Z", "live": True},
    2: {
        "tenant": "a",
        "tags": ["y"],
        "n": 2,
        "weight": 1.5,
        "at": "2026-02-01T10:00:00+02:00",
        "live": False,
    },
    3: {"tenant": "b", "tags": [], "n": 3, "at": "2026-03-01T00:00:00Z", "user": None},
    4: {"tenant": "é/日本", "n": -4, "parts": [{"kind": "p", "live": True}, {"kind": "q", "live": False}]},
}
TENANT_A = FieldCondition(key="tenant", match=MatchValue(value="a"))
TAG_Y = FieldCondition(key="tags", match=MatchValue(value="y"))
NO_USER = models.IsEmptyCondition(is_empty=models.PayloadField(key="user"))
NULL_USER = models.IsNullCondition(is_null=models.PayloadField(key="user"))
NO_TAGS = models.IsEmptyCondition(is_empty=models.PayloadField(key="tags"))
FIRST_TIME, LAST_TIME = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999999, UTC)
FEBRUARY = datetime(2026, 2, 1, 8, tzinfo=UTC)

CASES = {
    "a value": (Filter(must=[TENANT_A]), {1, 2}),
    "a condition without a list": (Filter(must=TENANT_A), {1, 2}),
    "a value of other scripts": (
        Filter(must=[FieldCondition(key="tenant", match=MatchValue(value="é/日本"))]),
        {4},
    ),
    "a value in a list": (Filter(must=[TAG_Y]), {1, 2}),
    "a number": (Filter(must=[FieldCondition(key="n", match=MatchValue(value=-4))]), {4}),
    "true": (Filter(must=[FieldCondition(key="live", match=MatchValue(value=True))]), {1}),
    "false": (Filter(must=[FieldCondition(key="live", match=MatchValue(value=False))]), {2}),
    "any of some": (Filter(must=[FieldCondition(key="tenant", match=MatchAny(any=["b", "a"]))]), {1, 2, 3}),
    "any number": (Filter(must=[FieldCondition(key="n", match=MatchAny(any=[1, 3]))]), {1, 3}),
    "any of none": (Filter(must=[FieldCondition(key="tenant", match=MatchAny(any=[]))]), set()),
    "all except": (
        Filter(must=[FieldCondition(key="tenant", match=models.MatchExcept(**{"except": ["a"]}))]),
        {3, 4},
    ),
    "a range": (Filter(must=[FieldCondition(key="n", range=models.Range(gt=1, lte=3))]), {2, 3}),
    "a range of floats": (
        Filter(must=[FieldCondition(key="weight", range=models.Range(gte=0.5, lt=1.5))]),
        {1},
    ),
    "times up to another, inclusive": (
        Filter(must=[FieldCondition(key="at", range=models.DatetimeRange(lte=FEBRUARY))]),
        {1, 2},
    ),
    "times after another": (
        Filter(must=[FieldCondition(key="at", range=models.DatetimeRange(gt=FEBRUARY))]),
        {3},
    ),
    "ids": (Filter(must=[HasIdCondition(has_id=[point_id(2), point_id(4), point_id(9)])]), {2, 4}),
    "empty or absent": (Filter(must=[NO_USER]), {1, 2, 3, 4}),
    "an empty list": (
        Filter(must=[models.IsEmptyCondition(is_empty=models.PayloadField(key="tags"))]),
        {3, 4},
    ),
    "null": (Filter(must=[NULL_USER]), {3}),
    "with a vector": (Filter(must=[models.HasVectorCondition(has_vector="dense")]), {1}),
    "without a vector": (Filter(must_not=[models.HasVectorCondition(has_vector="dense")]), {2, 3, 4}),
    "should": (
        Filter(should=[FieldCondition(key="n", match=MatchValue(value=3)), TAG_Y]),
        {1, 2, 3},
    ),
    "must and must not": (
        Filter(must=[TENANT_A], must_not=[HasIdCondition(has_id=[point_id(1)])]),
        {2},
    ),
    "nested filters": (
        Filter(must=[Filter(should=[TENANT_A, Filter(must_not=[TAG_Y])]), Filter(must_not=[NULL_USER])]),
        {1, 2, 4},
    ),
    "at least two of three": (
        Filter(
            min_should=models.MinShould(
                conditions=[TENANT_A, TAG_Y, FieldCondition(key="n", match=MatchValue(value=1))], min_count=3
            )
        ),
        {1},
    ),
    "an object of a list": (
        Filter(
            must=[
                models.NestedCondition(
                    nested=models.Nested(
                        key="parts",
                        filter=Filter(
                            must=[
                                FieldCondition(key="kind", match=MatchValue(value="p")),
                                FieldCondition(key="live", match=MatchValue(value=True)),
                            ]
                        ),
                    )
                )
            ]
        ),
        {4},
    ),
    # How Loci asks whether a memory is valid: a record without the field meets what must not be.
    "neither ended nor not yet begun": (
        Filter(
            must=[
                Filter(
                    must_not=[
                        FieldCondition(key="at", range=models.DatetimeRange(lte=FEBRUARY)),
                        FieldCondition(key="at", range=models.DatetimeRange(gt=LAST_TIME)),
                    ]
                )
            ]
        ),
        {3, 4},
    ),
    "times of the last and the first year": (
        Filter(
            must=[FieldCondition(key="at", range=models.DatetimeRange(lt=LAST_TIME))],
            must_not=[FieldCondition(key="at", range=models.DatetimeRange(lt=FIRST_TIME))],
        ),
        {1, 2, 3},
    ),
    "one of some, or without the field": (
        Filter(should=[FieldCondition(key="tags", match=MatchAny(any=["x"])), NO_TAGS]),
        {1, 3, 4},
    ),
    "without any of some": (
        Filter(must_not=[FieldCondition(key="tags", match=MatchAny(any=["x", "z"]))]),
        {2, 3, 4},
    ),
    "no condition": (Filter(), {1, 2, 3, 4}),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_filter_returns_exactly_the_matching_points(
    client: AsyncQdrantClient, collection: str, case: str
) -> None:
    point_filter, expected = CASES[case]
    await client.upsert(
        collection,
        [
            models.PointStruct(id=point_id(number), vector={"bm25": words(5)}, payload=payload)
            for number, payload in PAYLOADS.items()
        ],
    )
    await client.update_vectors(collection, [models.PointVectors(id=point_id(1), vector={"dense": unit(0)})])
    records, _ = await client.scroll(collection, point_filter)
    assert set(numbers(records)) == expected
    assert await _query_until(client, collection, point_filter, expected) == expected
    assert (await client.count(collection, point_filter)).count == len(expected)


async def _query_until(
    client: AsyncQdrantClient, collection: str, point_filter: Filter, expected: set[int]
) -> set[int]:
    """Return what a keyword query finds; repeat it for up to 10 s until that is what is expected.

    While a server merges segments, such a query may miss points for a second or two after their write.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        result = await client.query_points(
            collection, query=words(5), using="bm25", query_filter=point_filter
        )
        found = set(numbers(result.points))
        if found == expected or time.monotonic() >= deadline:
            return found
        await asyncio.sleep(0.05)
