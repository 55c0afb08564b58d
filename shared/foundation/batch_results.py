"""Results of a batch whose items succeed or fail on their own, in the order of the request."""

from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = dict[str, Any]


def merge_results(
    stored_results: Sequence[JsonObject], refused_results: Mapping[int, JsonObject]
) -> list[JsonObject]:
    """Return one result per item, in the order of the items.

    `refused_results` maps the position of an item to its result. `stored_results` has the results of all
    other items in their order.
    """
    remaining = iter(stored_results)
    count = len(stored_results) + len(refused_results)
    return [
        refused_results[position] if position in refused_results else next(remaining)
        for position in range(count)
    ]
