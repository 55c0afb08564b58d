"""What is read of skills to choose among them: the catalogue of a context, and the hits of a search.

Functions take the caller's transaction. The statements are constants (`shared.infra.prepared`), because each
context of a scope with skills needs both.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

from sqlalchemy import ARRAY, Select, Text, any_, bindparam, select

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.transaction import Transaction
from shared.memory.skills.queries import in_force
from shared.memory.skills.skill import CatalogueEntry
from shared.memory.skills.table import skill

_DESCRIPTION = skill.c.front_matter["description"].astext.label("description")
_ENTRY = (skill.c.id, skill.c.name, skill.c.summary, skill.c.version, _DESCRIPTION)


async def list_catalogue(tx: Transaction, scope: Scope) -> list[CatalogueEntry]:
    """Return the skills in force in a scope, by name."""
    statement = _catalogue(has_user=scope.user_id is not None)
    return _to_entries(await tx.fetch(statement, prepared.scope_values(scope)))


async def list_hits(tx: Transaction, scope: Scope, ids: Sequence[str]) -> list[CatalogueEntry]:
    """Return the skills among `ids` that are in force in a scope, in no particular order."""
    statement = _hits(has_user=scope.user_id is not None)
    values = prepared.scope_values(scope) | {"ids": list(ids)}
    return _to_entries(await tx.fetch(statement, values))


def _to_entries(rows: Sequence[prepared.Row]) -> list[CatalogueEntry]:
    return [CatalogueEntry(*map(row.__getitem__, CatalogueEntry._fields)) for row in rows]


@cache
def _catalogue(*, has_user: bool) -> Select[Any]:
    return select(*_ENTRY).where(in_force(prepared.named_scope(has_user=has_user))).order_by(skill.c.name)


@cache
def _hits(*, has_user: bool) -> Select[Any]:
    is_hit = skill.c.id == any_(bindparam("ids", type_=ARRAY(Text)))
    return select(*_ENTRY).where(in_force(prepared.named_scope(has_user=has_user)), is_hit)
