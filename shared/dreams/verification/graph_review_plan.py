"""What a model proposes about entities that look alike, as data that nothing has checked yet.

`parse` is lenient, because a plan alone changes nothing. Every item that the model wrote stays an item of
the plan, so that `graph_review_check` can accept or reject each of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.dreams.verification.plan import to_list
from shared.foundation import model_output


@dataclass(frozen=True, slots=True)
class ProposedMerge:
    """Two entities, by their labels, that the model takes for one."""

    keep: str
    drop: str


@dataclass(frozen=True, slots=True)
class ProposedExpiry:
    """A triple that does not hold any more because of another one, by their labels, and the reason."""

    id: str
    because_of: str
    reason: str


@dataclass(frozen=True, slots=True)
class GraphReviewPlan:
    """What a model proposes about some entities and what is said of them."""

    merges: tuple[ProposedMerge, ...] = ()
    expiries: tuple[ProposedExpiry, ...] = ()


def parse(reply: str) -> GraphReviewPlan:
    """Parse `{merge: [{keep, drop}], invalidate: [{id, because, reason}]}`.

    Raises errors.InvalidModelReply if the reply has no such object.
    """
    payload = model_output.parse_object(reply, "merge", "invalidate")
    return GraphReviewPlan(
        tuple(
            ProposedMerge(_label(item, "keep"), _label(item, "drop"))
            for item in map(_as_object, to_list(payload.get("merge")))
        ),
        tuple(
            ProposedExpiry(_label(item, "id"), _label(item, "because"), _label(item, "reason"))
            for item in map(_as_object, to_list(payload.get("invalidate")))
        ),
    )


def _as_object(item: Any) -> Mapping[str, Any]:
    return item if isinstance(item, dict) else {}


def _label(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name)
    return value.strip(" []").casefold() if isinstance(value, str) else ""
