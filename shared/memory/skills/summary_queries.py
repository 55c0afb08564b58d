"""Every statement on the summaries that skills came without. None commits the caller's transaction."""

from sqlalchemy import ColumnElement, select, update

from shared.infra.postgres import tenant_filter
from shared.infra.transaction import Transaction
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.skill import Skill, SummaryOrigin
from shared.memory.skills.table import skill as skill_table


async def find(tx: Transaction, skill_id: str) -> Skill | None:
    """Return the skill of this id if nobody has given it a summary. Or None."""
    return await SKILL.find(tx, skill_table.c.id == skill_id, _is_missing())


async def list_missing(tx: Transaction, limit: int) -> dict[str, int]:
    """Return skills of a tenant whose summary is still to be written, as id → version."""
    columns = skill_table.c
    is_untried = columns.unsummarised_version.is_distinct_from(columns.version)
    where = (tenant_filter(skill_table, tx.tenant), _is_missing(), is_untried)
    statement = select(columns.id, columns.version).where(*where).order_by(columns.id).limit(limit)
    return {row.id: row.version for row in await tx.execute(statement)}


def _is_missing() -> ColumnElement[bool]:
    return skill_table.c.summary_origin == SummaryOrigin.CONTENT.value


async def note_unsummarised(tx: Transaction, skill_id: str, version: int) -> None:
    """Note that no model could write a summary of a skill in this version, if it is still in it."""
    columns = skill_table.c
    where = (tenant_filter(skill_table, tx.tenant), columns.id == skill_id, columns.version == version)
    await tx.execute(update(skill_table).where(*where).values(unsummarised_version=version))
