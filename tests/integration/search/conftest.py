"""Fixtures: keyword searches that leave out points, as a real server does while it merges segments."""

from collections.abc import Callable, Sequence

import pytest

from shared.infra.qdrant import Json, Qdrant
from shared.search.index.points import KEYWORDS
from tests.agent import Agent
from tests.conftest import Gateway

Hide = Callable[[Callable[[str], bool]], None]


@pytest.fixture
def agent(gateway: Gateway) -> Agent:
    """Return an agent whose key has every right in a tenant of its own."""
    return Agent(gateway.client, gateway.tenant)


@pytest.fixture
def hide(monkeypatch: pytest.MonkeyPatch) -> Hide:
    """Return a function that hides points of certain record ids from the keyword channel, and only there."""
    query_batch = Qdrant.query_batch

    def hide_from_keywords(is_hidden: Callable[[str], bool]) -> None:
        async def query_without_hidden(
            qdrant: Qdrant, collection: str, requests: Sequence[Json]
        ) -> list[list[Json]]:
            results = await query_batch(qdrant, collection, requests)
            return [
                [p for p in points if request.get("using") != KEYWORDS or not is_hidden(_record_id(p))]
                for request, points in zip(requests, results, strict=True)
            ]

        monkeypatch.setattr(Qdrant, "query_batch", query_without_hidden)

    return hide_from_keywords


def _record_id(point: Json) -> str:
    return str(point["payload"]["record_id"])
