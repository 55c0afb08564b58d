"""Build the filters of searches as Qdrant conditions.

The search client adds the tenant's condition to every search by itself, so no caller can leave it out.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from shared.foundation.scope import Scope

Condition = dict[str, Any]
"""A condition on points, as Qdrant's JSON. Only this module builds conditions; others pass them on."""
NO_USER = ""
"""The `user_id` of a record without a user, because filtering by a missing field is slow."""


def scope_conditions(scope: Scope) -> list[Condition]:
    """Return the conditions that a scope sees a record: it is common to the agent, or belongs to the user."""
    user_ids = [NO_USER] if scope.user_id is None else [NO_USER, scope.user_id]
    return [field_equals("agent_id", scope.agent_id), field_is_any("user_id", user_ids)]


def contains_all(key: str, values: Sequence[str]) -> list[Condition]:
    """Return the conditions that a list field contains all of these values."""
    return [field_equals(key, value) for value in values]


def in_range(key: str, after: datetime | None, before: datetime | None) -> list[Condition]:
    """Return the condition that a time lies in a range, both ends included; none for a range without ends."""
    if after is None and before is None:
        return []
    ends = {"gte": to_payload_time(after), "lte": to_payload_time(before)}
    return [{"key": key, "range": {name: end for name, end in ends.items() if end}}]


def metadata_equals(metadata: Mapping[str, str]) -> list[Condition]:
    """Return the conditions that a record has all of these metadata pairs."""
    return [field_equals("metadata", metadata_pair(key, value)) for key, value in metadata.items()]


def metadata_pair(key: str, value: str) -> str:
    """Return a metadata pair as one filterable term."""
    return f"{key}\x1f{value}"


def tenant_condition(tenant: str) -> list[Condition]:
    """Return the condition that a record belongs to a tenant. All searches use this function."""
    return [field_equals("tenant", tenant)]


def field_equals(key: str, value: str | bool) -> Condition:  # noqa: FBT001
    """Return the condition that a payload field is, or contains, a value."""
    return {"key": key, "match": {"value": value}}


def field_is_any(key: str, values: Sequence[str]) -> Condition:
    """Return the condition that a payload field is, or contains, one of these values."""
    return {"key": key, "match": {"any": list(values)}}


def is_less(key: str, number: int) -> Condition:
    """Return the condition that a payload field is a lower number."""
    return {"key": key, "range": {"lt": number}}


def path_prefixes(path: str | None) -> list[str]:
    """Return all prefixes of a path that end at a segment: `a`, `a/b` and `a/b/c` for `a/b/c`."""
    if path is None:
        return []
    segments = path.split("/")
    return ["/".join(segments[: i + 1]) for i in range(len(segments))]


def to_payload_time(moment: datetime | None) -> str | None:
    """Return a time in the format of the payload."""
    return moment.astimezone(UTC).isoformat() if moment else None


def is_record(record_ids: Sequence[str]) -> Condition:
    """Return the condition that a point is a version of one of these records."""
    return field_is_any("record_id", record_ids)


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that at least one of these is met."""
    return {"should": list(conditions)}


def none_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that none of these is met."""
    return {"must_not": list(conditions)}


def all_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that all of these are met."""
    return {"must": list(conditions)}


def is_empty(key: str) -> Condition:
    """Return the condition that a payload field is missing, null or an empty list."""
    return {"is_empty": {"key": key}}


def is_within(key: str, bounds: Mapping[str, datetime]) -> Condition:
    """Return the condition that a time keeps these bounds, each named `gt`, `gte`, `lt` or `lte`."""
    return {"key": key, "range": {name: to_payload_time(moment) for name, moment in bounds.items()}}


def is_later_than(key: str, moment: datetime) -> Condition:
    """Return the condition that a time is after `moment`."""
    return is_within(key, {"gt": moment})


def is_earlier_than(key: str, moment: datetime) -> Condition:
    """Return the condition that a time is before `moment`."""
    return is_within(key, {"lt": moment})


def is_at_most(key: str, moment: datetime) -> Condition:
    """Return the condition that a time is `moment` or before it."""
    return is_within(key, {"lte": moment})
