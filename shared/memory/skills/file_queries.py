"""Every statement on the files of skills. Functions take the caller's transaction and never commit.

Whoever writes or deletes files has locked the skills of their scope (`queries.lock_scope`), so no file is
deleted as unused while somebody stores a skill that names it.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import JSONB, insert

from shared.foundation.scope import Scope
from shared.infra import prepared
from shared.infra.postgres import exact_scope, is_any_of
from shared.infra.transaction import Transaction
from shared.memory.skills.table import skill, skill_file, skill_version


async def add(tx: Transaction, scope: Scope, contents: Mapping[str, bytes]) -> None:
    """Store the contents of files by their digests; those that the scope has are left as they are."""
    for sha256, content in contents.items():
        values = prepared.scope_values(scope) | {"sha256": sha256, "content": content}
        await tx.execute(insert(skill_file).values(values).on_conflict_do_nothing())


async def read(tx: Transaction, scope: Scope, digests: Collection[str]) -> dict[str, bytes]:
    """Return the contents of those of these files that exactly this scope has, by their digests."""
    where = (exact_scope(skill_file, scope), is_any_of(skill_file.c.sha256, digests))
    rows = await tx.execute(select(skill_file.c.sha256, skill_file.c.content).where(*where))
    return {row.sha256: row.content for row in rows}


async def list_present(tx: Transaction, scope: Scope, digests: Collection[str]) -> set[str]:
    """Return those of these digests of which exactly this scope has the file."""
    where = (exact_scope(skill_file, scope), is_any_of(skill_file.c.sha256, digests))
    return set(await tx.scalars(select(skill_file.c.sha256).where(*where)))


async def delete_unused(tx: Transaction, scope: Scope) -> int:
    """Delete the files of a scope that no skill and no version names, and return how many."""
    of_scope = exact_scope(skill, scope)
    file = func.jsonb_array_elements(skill.c.files).column_valued("file", joins_implicitly=True)
    current = select(file.cast(JSONB)["sha256"].astext).select_from(skill).where(of_scope)
    version_file = func.jsonb_array_elements(skill_version.c.files).column_valued(
        "version_file", joins_implicitly=True
    )
    is_version = (skill_version.c.tenant == skill.c.tenant) & (skill_version.c.skill_id == skill.c.id)
    earlier = (
        select(version_file.cast(JSONB)["sha256"].astext)
        .select_from(skill_version.join(skill, is_version))
        .where(of_scope)
    )
    is_unused = skill_file.c.sha256.not_in(current.union(earlier))
    statement = delete(skill_file).where(exact_scope(skill_file, scope), is_unused)
    return (await tx.execute(statement)).rowcount
