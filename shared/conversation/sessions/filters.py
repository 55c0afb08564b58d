"""What a session must be to stand in a list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement

from shared.conversation.sessions.filter_fields import column_of
from shared.conversation.sessions.session import SessionKind
from shared.conversation.sessions.table import session
from shared.foundation import validation
from shared.foundation.filter_expression import Expression
from shared.foundation.optional_fields import without_none
from shared.infra import filter_sql


@dataclass(frozen=True, slots=True)
class SessionFilters:
    """Filters that must all hold. Times are inclusive; of the metadata, every pair must be there."""

    agent_id: str | None = None
    user_id: str | None = None
    kind: SessionKind | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    expression: Expression | None = None

    def to_sql(self) -> list[ColumnElement[bool]]:
        """Return the conditions on rows. Raises errors.Invalid for a time out of range."""
        columns = without_none(agent_id=self.agent_id, user_id=self.user_id, kind=self.kind)
        conditions = [session.c[name] == value for name, value in columns.items()]
        if self.created_after is not None:
            conditions.append(
                session.c.created_at >= validation.check_time(self.created_after, "created_after")
            )
        if self.created_before is not None:
            conditions.append(
                session.c.created_at <= validation.check_time(self.created_before, "created_before")
            )
        if self.metadata:
            conditions.append(session.c.metadata.contains(dict(self.metadata)))
        if self.expression is not None:
            conditions.append(filter_sql.to_sql(self.expression, column_of))
        return conditions
