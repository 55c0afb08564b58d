"""The behaviours of a model endpoint, as small values.

There are three groups: faults of the connection or of HTTP, which fit any path; replies of a chat model;
responses of an embedding model. `read` creates any of them from JSON, for a stand-in in another process.
"""

from collections.abc import Mapping
from typing import Any

from tests.standins.embedded import (
    NotANumber,
    RepeatedIndex,
    Shuffled,
    Vectors,
    WrongCount,
    WrongDimension,
    ZeroVector,
)
from tests.standins.faults import Cut, Drop, Garbage, Hang, Slow, Status, WrongShape
from tests.standins.replies import Drip, EmptyChoices, Fenced, Refusal, Reply, Thinking, Truncated, usage
from tests.standins.wire import Behaviour

_KINDS: tuple[type[Behaviour], ...] = (
    Status,
    Drop,
    Cut,
    Hang,
    Slow,
    Garbage,
    WrongShape,
    Reply,
    Drip,
    Truncated,
    Thinking,
    Fenced,
    Refusal,
    EmptyChoices,
    Vectors,
    WrongDimension,
    WrongCount,
    NotANumber,
    ZeroVector,
    Shuffled,
    RepeatedIndex,
)
_BY_NAME = {kind.__name__: kind for kind in _KINDS}

__all__ = [
    "Cut",
    "Drip",
    "Drop",
    "EmptyChoices",
    "Fenced",
    "Garbage",
    "Hang",
    "NotANumber",
    "Refusal",
    "RepeatedIndex",
    "Reply",
    "Shuffled",
    "Slow",
    "Status",
    "Thinking",
    "Truncated",
    "Vectors",
    "WrongCount",
    "WrongDimension",
    "WrongShape",
    "ZeroVector",
    "read",
    "usage",
]


def read(plan: str | Mapping[str, Any]) -> Behaviour:
    """Return the behaviour that JSON describes: a text, or {"kind": "Slow", "seconds": 1, "then": …}."""
    if isinstance(plan, str):
        return Reply(plan)
    options = {name: value for name, value in plan.items() if name != "kind"}
    if options.get("then") is not None:
        options["then"] = read(options["then"])
    return _BY_NAME[plan["kind"]](**options)
