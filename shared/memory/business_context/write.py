"""Write the business context of a tenant: a person's text as a whole, or one promoted line.

Only an unbound key may do either. The text stands for the whole tenant, and a bound key, of one agent or
user, would tell all others what it was only entrusted with itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.conversation.scratchpad.near_identical import words_of
from shared.foundation import errors, validation, versions
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Caller
from shared.foundation.versions import ABSENT, Expected
from shared.infra.transaction import Transaction
from shared.memory.business_context import queries
from shared.memory.business_context.edit import edit
from shared.memory.business_context.part import MAX_CHARACTERS, Part, parts_of, promoted_line, text_of
from shared.memory.business_context.read import to_json, version_of
from shared.platform.auth import rights
from shared.platform.auth.rights import Action, Area
from shared.platform.resources import Resources

_WHAT = "the business context"


def require_right(caller: Caller) -> None:
    """Raise errors.Forbidden for a bound key."""
    rights.require_area(caller, Area.TENANT, Action.WRITE)


async def put(
    resources: Resources,
    caller: Caller,
    content: str,
    expected: Expected | None,
    trust: Trust | None = None,
) -> dict[str, Any]:
    """Replace the text, and return it as `read` does. Promoted lines in it keep their provenance.

    Raises errors.PreconditionRequired for a text that replaces another without naming its version: it would
    bring back what was erased meanwhile, and drop what was promoted. Raises errors.PreconditionFailed unless
    the version is `expected`, and errors.Invalid for more `trust` than the caller has.
    """
    require_right(caller)
    origin = caller.origin.lowered(trust)
    validation.check_text(content, "content", MAX_CHARACTERS, allow_blank=True)
    async with resources.postgres.for_tenant(caller.tenant) as tx:
        await queries.lock(tx)
        before = parts_of(await queries.list_rows(tx, lock_rows=True))
        _check_version(text_of(before), expected)
        await _store(tx, before, content, origin)
        parts = parts_of(await queries.list_rows(tx))
    return to_json(parts, is_owner=True)


def _check_version(content: str, expected: Expected | None) -> None:
    if not content and (expected is None or ABSENT in expected):
        return
    if expected is None:
        raise errors.PreconditionRequired(f"{_WHAT} is not empty: name its version in If-Match")
    versions.check(_WHAT, version_of(content), expected)


async def _store(tx: Transaction, before: Sequence[Part], content: str, origin: Origin) -> None:
    result = edit(before, content)
    moved = [
        {"id": row.id, "position": position, "content": line}
        for part, position, line in result.kept
        for row in part.rows
    ]
    moved_ids = {row["id"] for row in moved}
    gone = [row.id for part in before for row in part.rows if row.id not in moved_ids]
    await queries.delete_rows(tx, gone)
    await queries.move_rows(tx, moved)
    # A part that stands there already was said by whoever wrote it, if that is more trusted.
    known = {
        part.text: part.rows[0].origin
        for part in before
        if not part.is_promoted and part.rows[0].origin.trust > origin.trust
    }
    for position, own_text in result.own:
        kept = known.get(own_text, origin)
        await queries.insert_row(tx, position, own_text, kept)


@dataclass(frozen=True, slots=True)
class AddedLine:
    """A promoted line: the id of its row, and whether the text had the line already."""

    id: str
    is_repeated: bool


async def add_line(
    tx: Transaction, content: str, origin: Origin, **provenance: str | None
) -> AddedLine | None:
    """Add a promoted line at the end, or one more provenance to a near-identical promoted one.

    `provenance` are agent_id, user_id, session_id, snippet_id and reason. The caller has called
    `queries.lock`. Return None if the text has no room for the line.
    """
    line = promoted_line(content)
    parts = parts_of(await queries.list_rows(tx, lock_rows=True))
    words = words_of(line)
    for part in parts:
        if part.is_promoted and words_of(part.text) == words:
            row_id = await _repeat(tx, part, line, origin, provenance)
            return AddedLine(row_id, is_repeated=True)
    if len(text_of(parts)) + len(line) + 1 > MAX_CHARACTERS:
        return None
    position = parts[-1].rows[0].position + 1 if parts else 0
    return AddedLine(await queries.insert_row(tx, position, line, origin, **provenance), False)


async def _repeat(
    tx: Transaction, part: Part, line: str, origin: Origin, provenance: dict[str, str | None]
) -> str:
    """Note that a line was promoted once more: a snippet that was promoted into it before is noted once."""
    for row in part.rows:
        if row.snippet_id == provenance["snippet_id"]:
            return row.id
    return await queries.insert_row(tx, part.rows[0].position, line, origin, **provenance)
