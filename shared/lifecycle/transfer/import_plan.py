"""Plan what an import does with a batch of lines, before anything is written. All functions are pure.

An import restores: nothing is reinforced, and counts and times become those of the line. Three things
are not imported:

- a live memory with the fingerprint or the key of another live memory. The first one stays. One that an
  update frees is free from the next batch on (duplicates are tried again, see `memory_lines.py`);
- a text that was deleted on purpose, unless the import restores;
- the state before an enrichment: a line that is still `pending` does not undo it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm.fingerprint import fingerprint_of, normalize
from shared.memory.longterm.memory import RECALLED_LINE_FIELDS, Memory

_ENRICHMENT_FIELDS = {
    *("state", "failure_reason", "superseded_by", "archived_at", "archive_reason", "archived_by"),
}
_NOT_NULL = ("created_at", "last_seen_at")


@dataclass(frozen=True, slots=True)
class ImportState:
    """The stored state that concerns a batch of lines, and the origin of what their importer says.

    `ids` maps each id of the lines to the id here.
    """

    scope: Scope
    importer: Origin
    now: datetime
    can_enrich: bool
    ids: Mapping[str, str]
    memories: Mapping[str, Memory] = field(default_factory=dict)
    ids_by_fingerprint: Mapping[bytes, str] = field(default_factory=dict)
    ids_by_key: Mapping[tuple[str, str], str] = field(default_factory=dict)
    deleted_contents: frozenset[str] = frozenset()


@dataclass(slots=True)
class ImportPlan:
    """What is done with a batch of lines. `updated` has each memory before and after."""

    created: list[Memory] = field(default_factory=list)
    updated: list[tuple[Memory, Memory]] = field(default_factory=list)
    skipped: int = 0
    remapped: dict[str, str] = field(default_factory=dict)
    tombstoned: list[str] = field(default_factory=list)
    duplicates: list[tuple[MemoryLine, str]] = field(default_factory=list)
    # Lines that the caller may not import, with the rules.
    refused: list[tuple[MemoryLine, str]] = field(default_factory=list)

    @property
    def reindexed(self) -> list[Memory]:
        """Memories that need new jobs: created ones, and those of a new version or newly pending."""
        return [*self.created, *(after for before, after in self.updated if _needs_jobs(before, after))]

    @property
    def no_longer_pending(self) -> list[str]:
        """Ids of memories whose enrichment is cancelled."""
        was_pending = [after for before, after in self.updated if before.state is MemoryState.PENDING]
        return [after.id for after in was_pending if after.state is not MemoryState.PENDING]


def _needs_jobs(before: Memory, after: Memory) -> bool:
    newly_pending = after.state is MemoryState.PENDING and before.state is not MemoryState.PENDING
    return after.version != before.version or newly_pending


def plan(state: ImportState, lines: Sequence[MemoryLine]) -> ImportPlan:
    """Return the plan for lines of which no two have the same id."""
    new_plan, used = ImportPlan(), _UsedNames(dict(state.ids_by_fingerprint), dict(state.ids_by_key))
    for line in lines:
        before = state.memories.get(state.ids[line.id])
        after = _apply_line(state, line, before)
        if before == after:
            new_plan.skipped += 1
        elif after.content in state.deleted_contents and not _says_already(before, after):
            new_plan.tombstoned.append(line.id)
            continue
        elif (duplicate_id := used.find_other(after)) is not None:
            new_plan.duplicates.append((line, duplicate_id))
            continue
        else:
            _add_to_plan(new_plan, before, after)
            used.add(after)
        if after.id != line.id:
            new_plan.remapped[line.id] = after.id
    return new_plan


def _says_already(before: Memory | None, after: Memory) -> bool:
    """Tell whether a memory has the text already, and no archived one becomes live with it."""
    if before is None or not _has_content(before, after.content):
        return False
    return before.archived_at is None or after.archived_at is not None


def _has_content(memory: Memory, content: str) -> bool:
    return normalize(memory.content) == normalize(content)


@dataclass(slots=True)
class _UsedNames:
    """The ids of the live memories of the scope, by what no two of them may have in common."""

    by_fingerprint: dict[bytes, str]
    by_key: dict[tuple[str, str], str]

    def find_other(self, after: Memory) -> str | None:
        """Return the id of another live memory that says the same, or that has the same key."""
        duplicate_id = self.by_fingerprint.get(fingerprint_of(after)) if after.is_deduplicated else None
        if after.archived_at is None and after.key is not None:
            duplicate_id = self.by_key.get((after.namespace, after.key))
        return duplicate_id if duplicate_id != after.id else None

    def add(self, after: Memory) -> None:
        """Note a memory that will be stored."""
        if after.is_deduplicated:
            self.by_fingerprint[fingerprint_of(after)] = after.id
        if after.archived_at is None and after.key is not None:
            self.by_key[after.namespace, after.key] = after.id


def _add_to_plan(new_plan: ImportPlan, before: Memory | None, after: Memory) -> None:
    if before is None:
        new_plan.created.append(after)
    else:
        new_plan.updated.append((before, _with_versions(before, after)))


def _with_versions(before: Memory, after: Memory) -> Memory:
    is_line_changed = any(getattr(before, name) != getattr(after, name) for name in RECALLED_LINE_FIELDS)
    return after.model_copy(
        update={
            "version": before.version + 1,
            "content_version": before.content_version + is_line_changed,
        }
    )


def _apply_line(state: ImportState, line: MemoryLine, before: Memory | None) -> Memory:
    if before is None:
        return _new_memory(state, line)
    # What was resolved since stays so: the two are rivals again only if one of them is new here.
    fields = {name: value for name, value in _named_fields(state, line).items() if name != "contested_with"}
    if not _has_content(before, line.content):
        fields["origin"] = _origin(state, line)
    is_enriched_since = fields.get("state") is MemoryState.PENDING and before.state is not MemoryState.PENDING
    if is_enriched_since and _has_content(before, line.content):
        fields = {name: value for name, value in fields.items() if name not in _ENRICHMENT_FIELDS}
    after = _with_fields(before, _without_lost_pending(state, fields))
    if after == before or "updated_at" in fields:
        return after
    return after.model_copy(update={"updated_at": state.now})


def _new_memory(state: ImportState, line: MemoryLine) -> Memory:
    fields = {name: getattr(line, name) for name in type(line).model_fields} | _named_fields(state, line)
    fields["created_at"] = line.created_at or state.now
    fields["last_seen_at"] = line.last_seen_at or fields["created_at"]
    scope = state.scope
    fields |= {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    # Later than every version that a deleted memory of the same id had.
    fields |= {"version": round(state.now.timestamp() * 1_000_000), "content_version": 1}
    fields["source"] = line.sources[0] if line.sources else None
    fields["origin"] = _origin(state, line)
    return Memory.model_construct(**_without_lost_pending(state, fields))


def _origin(state: ImportState, line: MemoryLine) -> Origin:
    """Return the origin of a text that a line brings; a line that names none is what its importer says."""
    return (line.origin or state.importer).imported(state.importer)


def _named_fields(state: ImportState, line: MemoryLine) -> dict[str, Any]:
    """Return the fields that a line names, with the ids that they have here."""
    fields = {name: getattr(line, name) for name in line.model_fields_set - {"origin"}}
    fields = {name: value for name, value in fields.items() if value is not None or name not in _NOT_NULL}
    for name in fields.keys() & {"superseded_by", "derived_from", "contested_with"}:
        fields[name] = [state.ids[reference] for reference in fields[name]]
    return fields | {"id": state.ids[line.id]}


def _without_lost_pending(state: ImportState, fields: dict[str, Any]) -> dict[str, Any]:
    """Make a pending memory final where no model would ever enrich it."""
    if fields.get("state") is MemoryState.PENDING and not state.can_enrich:
        return fields | {"state": MemoryState.FINAL}
    return fields


def _with_fields(before: Memory, fields: dict[str, Any]) -> Memory:
    after = before.model_copy(update=fields)
    return after.model_copy(update={"source": after.sources[0] if after.sources else None})
