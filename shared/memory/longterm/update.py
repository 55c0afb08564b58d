"""Change an entry by hand: a new version for the index, a note for the history."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func
from sqlalchemy.exc import IntegrityError

from shared.foundation import errors, stages
from shared.foundation.scope import Caller
from shared.foundation.stages import MemoryState
from shared.memory.longterm import history, index_document, queries, save
from shared.memory.longterm.fingerprint import fingerprint
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.resources import Resources
from shared.search.text import tsvector

_SEARCHABLE = {"content", "category", "tags", "metadata", "occurred_at"}
_SHOWN_IN_RECALL = {"content", "category"}


async def update(resources: Resources, caller: Caller, entry_id: str, changes: Mapping[str, Any]) -> Memory:
    """Apply changes to fields of an entry and return it.

    Raises errors.NotFound, and errors.Conflict when the entry is archived (naming what took its
    place) or when the change would make it say what another entry says already.
    """
    try:
        async with resources.postgres.for_tenant(caller.tenant) as connection:
            before = await queries.get(connection, caller, entry_id, lock=True)
            if before is None:
                raise errors.NotFound(f"no memory '{entry_id}'")
            values = await _values(before, changes)
            twin = await queries.find_duplicate(connection, before.scope, values["fingerprint"], entry_id)
            if twin is not None:
                raise errors.Conflict(f"memory '{twin}' says this already")
            after = await queries.update_columns(connection, caller.tenant, entry_id, values)
            await history.add_update(connection, caller.key_id, before, after)
            claims = await save.enqueue_jobs(connection, caller.tenant, [after])
    except IntegrityError:  # its twin was saved between the look and the change
        raise errors.Conflict("another memory says this already") from None
    await resources.index_writer.write_through([index_document.document(after)], claims)
    if after.state is MemoryState.PENDING:
        resources.publisher.wake(stages.ENRICH)
    return after


async def _values(before: Memory, changes: Mapping[str, Any]) -> dict[str, Any]:
    if before.archived_at is not None:
        successors = ", ".join(before.superseded_by) or "nothing"
        raise errors.Conflict(f"memory '{before.id}' is archived; it was superseded by {successors}")
    draft = MemoryDraft.model_validate(
        {**before.model_dump(include=set(MemoryDraft.model_fields)), **changes}
    ).validated()
    values = {name: getattr(draft, name) for name in changes}
    if "tags" in values:
        values["tags"] = list(values["tags"])
    return values | {
        "fingerprint": fingerprint(draft.content, draft.occurred_at),
        "search_terms": func.array_to_tsvector(tsvector.terms_of(index_document.keywords(draft))),
        "version": before.version + bool(_SEARCHABLE & set(changes)),
        "content_version": before.content_version + bool(_SHOWN_IN_RECALL & set(changes)),
        "updated_at": func.now(),
    }
