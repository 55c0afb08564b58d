"""What searches filter on, in the index's words. The tenant's filter is not here: it can't be left out."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from qdrant_client import models

from shared.foundation.scope import Scope
from shared.search.index.points import NOBODY, matches


def of_scope(scope: Scope) -> list[models.Condition]:
    """Return the condition of what a scope sees: the agent's common records, and its user's."""
    whose = [NOBODY] if scope.user_id is None else [NOBODY, scope.user_id]
    user = models.FieldCondition(key="user", match=models.MatchAny(any=whose))
    return [matches("agent", scope.agent_id), user]


def all_of(key: str, values: Sequence[str]) -> list[models.Condition]:
    """Return conditions that a list field contains every one of these values."""
    return [matches(key, value) for value in values]


def between(key: str, after: datetime | None, before: datetime | None) -> list[models.Condition]:
    """Return the condition that a time lies in an inclusive range, if there is one."""
    if after is None and before is None:
        return []
    return [models.FieldCondition(key=key, range=models.DatetimeRange(gte=after, lte=before))]


def pairs(metadata: Mapping[str, str]) -> list[models.Condition]:
    """Return conditions that a record carries these metadata pairs."""
    return [matches("metadata", f"{key}\x1f{value}") for key, value in metadata.items()]
