"""Filter expressions in plain Python, written from the contract, and random ones to compare with.

Nothing here is taken from the product. `selects` takes an expression and a memory as the API shows it.
"""

import operator
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

Json = dict[str, Any]
NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
_RANGES = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}
_TIMES = ("created_at", "updated_at", "last_seen_at", "occurred_at", "valid_from", "valid_until")
_PATHS = ("category", "namespace")
_NUMBERS = ("importance", "reinforcement_count", "source.seq")
_FIELDS = (
    *(*_TIMES, *_PATHS, *_NUMBERS, "tags", "key", "state", "source.session_id"),
    *("metadata.colour", "metadata.colour", "metadata.n.m", "metadata.none"),
)
CATEGORIES = ("a", "a/b", "a/b/c", "a/bc", "ab", "A/b", "x_y")
TAGS = ("red", "Red", "redder", "blue", "é日本")
COLOURS = ("red", "5", "5.0", "50e-1", "-3", "0.1", "007", "", "Infinity", "10", "é日本", "e5", "1e999")
KEYS = ("k", "schlüssel", "a%b")
SESSIONS = ("s1", "s1x", "S1")
STATES = ("final", "kept-raw", "failed", "archived")


def selects(expression: Json, memory: Json) -> bool:
    """Tell whether a list shows a memory whose validity does not count."""
    is_archived = memory["archived_at"] is not None
    return meets(expression, memory) and (not is_archived or _names_archived(expression, negated=False))


def _names_archived(expression: Json, *, negated: bool) -> bool:
    if "not" in expression:
        return _names_archived(expression["not"], negated=not negated)
    parts = expression.get("and", expression.get("or"))
    if parts is not None:
        return any(_names_archived(part, negated=negated) for part in parts)
    if expression["field"] != "state" or expression["op"] == "exists":
        return False
    named = expression["value"] if expression["op"] == "in" else [expression["value"]]
    return "archived" in named and negated is (expression["op"] == "ne")


def meets(expression: Json, memory: Json) -> bool:
    """Tell whether a memory meets an expression."""
    if "and" in expression:
        return all(meets(part, memory) for part in expression["and"])
    if "or" in expression:
        return any(meets(part, memory) for part in expression["or"])
    if "not" in expression:
        return not meets(expression["not"], memory)
    field, op, value = expression["field"], expression["op"], expression.get("value", True)
    values = _values(memory, field)
    if op == "exists":
        return bool(values) is value
    if op == "ne":
        return not any(_compare(field, "eq", item, value) for item in values)
    wanted = value if op == "in" else [value]
    return any(
        _compare(field, "eq" if op == "in" else op, item, wanted_value)
        for item in values
        for wanted_value in wanted
    )


def _values(memory: Json, field: str) -> list[Any]:
    if field.startswith("metadata."):
        value = memory["metadata"].get(field.removeprefix("metadata."))
    elif field.startswith("source."):
        value = (memory["source"] or {}).get(field.removeprefix("source."))
    else:
        value = memory[field]
    if field == "namespace" and value == "":
        return []
    if field in _TIMES and value is not None:
        value = datetime.fromisoformat(value)
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _compare(field: str, op: str, item: Any, value: Any) -> bool:
    if field.startswith("metadata.") and not isinstance(value, str):
        if not _NUMBER.fullmatch(item):
            return False
        item, value = Decimal(item), Decimal(str(value))
    if field in _TIMES:
        value = datetime.fromisoformat(value)
    if op == "prefix":
        return item == value or str(item).startswith(f"{value}/" if field in _PATHS else value)
    if op == "eq":
        return bool(item == value)
    return bool(_RANGES[op](item, value))


def random_memory(random: Random, number: int) -> Json:
    """Return the body of a memory, each of whose fields may be missing."""
    body: Json = {"content": f"word {number}", "importance": random.choice([0.1, 0.5, 0.8])}
    choices: Json = {
        "category": random.choice(CATEGORIES),
        "tags": random.sample(TAGS, random.randint(1, 3)),
        "metadata": {name: random.choice(COLOURS) for name in random.sample(("colour", "n.m"), 1)},
        "occurred_at": _time(random),
        "source": {"session_id": random.choice(SESSIONS), "seq": random.randint(0, 3)},
    }
    return body | {name: value for name, value in choices.items() if random.random() < 0.6}


def random_columns(random: Random, number: int) -> Json:
    """Return what else a memory may have: a key, a validity and a state."""
    has_key, is_closed = random.random() < 0.4, random.random() < 0.5
    state = random.choice((*STATES, "final"))
    return {
        "namespace": random.choice(("", "a", "a/b", "a/bc")) if has_key else "",
        "key": f"{random.choice(KEYS)}{number}" if has_key else None,
        "valid_from": NOON - timedelta(days=random.randint(5, 9)) if random.random() < 0.5 else None,
        "valid_until": NOON + timedelta(days=random.randint(-2, 2)) if is_closed else None,
        "state": state,
        "is_archived": state == "archived",
    }


def random_expression(random: Random, depth: int = 3) -> Json:
    """Return an expression that nests at most `depth` deep."""
    form = random.choice(("and", "or", "not", "one", "one")) if depth else "one"
    if form == "one":
        return _random_condition(random)
    if form == "not":
        return {"not": random_expression(random, depth - 1)}
    return {form: [random_expression(random, depth - 1) for _ in range(random.randint(1, 3))]}


def _random_condition(random: Random) -> Json:
    field = random.choice(_FIELDS)
    equality = ["eq", "ne", "in", "exists"]
    ordered = [*_RANGES] if field in (*_TIMES, *_NUMBERS) or field.startswith("metadata.") else []
    is_text = field not in (*_TIMES, *_NUMBERS, "state")
    op = random.choice([*equality, *ordered, *(["prefix"] if is_text else [])])
    if op == "exists":
        return {"field": field, "op": op, "value": random.random() < 0.5}
    if op == "in":
        return {"field": field, "op": op, "value": [_random_value(random, field, op) for _ in range(2)]}
    return {"field": field, "op": op, "value": _random_value(random, field, op)}


def _random_value(random: Random, field: str, op: str) -> Any:
    if field in _TIMES:
        return _time(random)
    if field.startswith("metadata."):
        numbers = (5, 5.0, -3, 0.1, 10, 1e30)
        return random.choice(COLOURS if op == "prefix" or random.random() < 0.5 else numbers)
    choices: dict[str, tuple[Any, ...]] = {
        "category": CATEGORIES,
        "namespace": ("a", "a/b", "b"),
        "importance": (0.1, 0.5, 0.8, 1),
        "reinforcement_count": (1, 1.5, 2),
        "source.seq": (0, 1, 2),
        "tags": TAGS,
        "key": tuple(f"{key}{number}" for key in KEYS for number in ("", *range(20))),
        "state": STATES,
        "source.session_id": (*SESSIONS, "s"),
    }
    return random.choice(choices[field])


def _time(random: Random) -> str:
    return (NOON + timedelta(days=random.randint(-2, 2))).isoformat()
