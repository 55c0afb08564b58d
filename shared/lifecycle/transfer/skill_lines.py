"""Choose which lines of skills an import stores: those whose files are there, as long as there is room."""

from collections.abc import Sequence

from shared.foundation.config import Settings
from shared.foundation.scope import Scope
from shared.infra.postgres import exact_scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer import row_queries
from shared.lifecycle.transfer.row_kind import LineKind
from shared.lifecycle.transfer.row_owners import RowLine
from shared.memory.skills import file_queries, queries
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.table import skill

WITHOUT_FILES = "its files are not there"
NO_ROOM = "there are as many skills as there may be"


async def select_complete(
    tx: Transaction, settings: Settings, scope: Scope, lines: Sequence[RowLine]
) -> tuple[list[RowLine], dict[str, list[int]]]:
    """Lock the skills of a scope; return the lines to store, and the numbers of the others by the reason."""
    await queries.lock_scope(tx, scope)
    if not lines or lines[0].kind.name is LineKind.SKILL_FILE:
        return list(lines), {}
    present = await file_queries.list_present(tx, scope, set[str]().union(*map(_digests, lines)))
    complete = [line for line in lines if _digests(line) <= present]
    existing = await row_queries.lock_rows(tx, lines[0].kind, scope, [line.key(scope) for line in complete])
    new = [line for line in complete if line.key(scope) not in existing]
    room = max(0, settings.skill_max_per_scope - await SKILL.count(tx, exact_scope(skill, scope)))
    without_room = {line.number for line in new[room:]}
    complete_numbers = {line.number for line in complete}
    return [line for line in complete if line.number not in without_room], {
        WITHOUT_FILES: [line.number for line in lines if line.number not in complete_numbers],
        NO_ROOM: sorted(without_room),
    }


def _digests(line: RowLine) -> set[str]:
    return {file["sha256"] for file in line.fields.get("files", ())}
