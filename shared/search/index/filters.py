"""What searches filter on, in the index's words. The tenant's filter is not here: it can't be left out."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from qdrant_client import models

from shared.foundation.scope import Scope

Condition = models.Condition
"""What a point must meet to be found: built here, opaque elsewhere."""


def scope_conditions(scope: Scope) -> list[Condition]:
    """Return the condition of what a scope sees: the agent's common records, and its user's."""
    whose = [NO_USER] if scope.user_id is None else [NO_USER, scope.user_id]
    user = models.FieldCondition(key="user_id", match=models.MatchAny(any=whose))
    return [field_equals("agent_id", scope.agent_id), user]


def contains_all(key: str, values: Sequence[str]) -> list[Condition]:
    """Return conditions that a list field contains every one of these values."""
    return [field_equals(key, value) for value in values]


def in_range(key: str, after: datetime | None, before: datetime | None) -> list[Condition]:
    """Return the condition that a time lies in an inclusive range, if there is one."""
    if after is None and before is None:
        return []
    return [models.FieldCondition(key=key, range=models.DatetimeRange(gte=after, lte=before))]


def metadata_equals(metadata: Mapping[str, str]) -> list[Condition]:
    """Return conditions that a record carries these metadata pairs."""
    return [field_equals("metadata", f"{key}\x1f{value}") for key, value in metadata.items()]


NO_USER = ""  # the `user` of a record that belongs to no user: a filter can't match an absence cheaply


def tenant_condition(tenant: str) -> list[Condition]:
    """Return the tenant filter: the one place that builds it."""
    return [field_equals("tenant", tenant)]


def field_equals(key: str, value: str | bool) -> models.FieldCondition:  # noqa: FBT001
    """Return the condition that a payload field is, or contains, a value."""
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def path_prefixes(path: str | None) -> list[str]:
    """Return every segment-aware prefix of a path: `a/b/c` is found under `a`, `a/b`, `a/b/c`."""
    if path is None:
        return []
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]


def to_payload_time(moment: datetime | None) -> str | None:
    """Return a time as the payload holds it."""
    return moment.astimezone(UTC).isoformat() if moment else None


def any_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that at least one of these holds."""
    return models.Filter(should=list(conditions))


def none_of(conditions: Sequence[Condition]) -> Condition:
    """Return the condition that not one of these holds."""
    return models.Filter(must_not=list(conditions))


def is_later_than(key: str, moment: datetime) -> Condition:
    """Return the condition that a time is after `moment`."""
    return models.FieldCondition(key=key, range=models.DatetimeRange(gt=moment))
