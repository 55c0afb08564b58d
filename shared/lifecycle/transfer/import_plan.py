"""What an import will do, decided before anything is written: a pure function over what is known.

Import restores, it does not observe: nothing is reinforced, counts and times become what the line
says. Three things are left alone and reported or passed over:

- a live entry that another live entry says already: of two that say the same, the first stays, and
  what a change frees is free for the next batch only (duplicates are tried again, see `transfer`);
- a text that was deleted on purpose, unless it is to be brought back;
- what enrichment has done since: a line that is still `pending` does not undo it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.foundation.scope import Scope
from shared.foundation.stages import MemoryState
from shared.lifecycle.transfer.ndjson import MemoryLine
from shared.memory.longterm import index_document as memory_document
from shared.memory.longterm.fingerprint import fingerprint, normalize
from shared.memory.longterm.memory import Memory

_PROGRESS = {"state", "failure_reason", "superseded_by", "archived_at", "archive_reason"}
_SHOWN_IN_RECALL = ("content", "category")
_NOT_NULL = ("created_at", "last_seen_at")


@dataclass(frozen=True, slots=True)
class ImportState:
    """What the stores say about a batch of lines."""

    scope: Scope
    now: datetime
    enriching: bool
    ids: Mapping[str, str]  # what each id and reference of the lines stands for here
    entries: Mapping[str, Memory] = field(default_factory=dict)
    facts: Mapping[bytes, str] = field(default_factory=dict)
    forgotten: frozenset[str] = frozenset()


@dataclass(slots=True)
class ImportPlan:
    """What will be done with a batch of lines."""

    created: list[Memory] = field(default_factory=list)
    updated: list[tuple[Memory, Memory]] = field(default_factory=list)
    skipped: int = 0
    remapped: dict[str, str] = field(default_factory=dict)
    tombstoned: list[str] = field(default_factory=list)
    duplicates: list[tuple[MemoryLine, str]] = field(default_factory=list)

    @property
    def reindexed(self) -> list[Memory]:
        """What searches or workers must hear of."""
        return [*self.created, *(after for before, after in self.updated if _concerns_workers(before, after))]

    @property
    def no_longer_pending(self) -> list[str]:
        """Ids whose enrichment is no longer wanted."""
        was_pending = [after for before, after in self.updated if before.state is MemoryState.PENDING]
        return [after.id for after in was_pending if after.state is not MemoryState.PENDING]


def _concerns_workers(before: Memory, after: Memory) -> bool:
    newly_pending = after.state is MemoryState.PENDING and before.state is not MemoryState.PENDING
    return after.version != before.version or newly_pending


def plan(known: ImportState, lines: Sequence[MemoryLine]) -> ImportPlan:
    """Decide about lines; no two of them have the same id."""
    made, facts = ImportPlan(), dict(known.facts)
    for line in lines:
        before = known.entries.get(known.ids[line.id])
        after = _after(known, line, before)
        if before == after:
            made.skipped += 1
        elif after.content in known.forgotten and not _says(before, after.content):
            made.tombstoned.append(line.id)
            continue
        elif (twin := _twin(facts, after)) is not None:
            made.duplicates.append((line, twin))
            continue
        else:
            _store(made, facts, before, after)
        if after.id != line.id:
            made.remapped[line.id] = after.id
    return made


def _says(before: Memory | None, content: str) -> bool:
    return before is not None and normalize(before.content) == normalize(content)


def _twin(facts: Mapping[bytes, str], after: Memory) -> str | None:
    holder = None if after.archived_at else facts.get(_fact(after))
    return holder if holder != after.id else None


def _store(made: ImportPlan, facts: dict[bytes, str], before: Memory | None, after: Memory) -> None:
    if before is None:
        made.created.append(after)
    else:
        made.updated.append((before, _renumbered(before, after)))
    if after.archived_at is None:
        facts[_fact(after)] = after.id


def _fact(one: Memory) -> bytes:
    return fingerprint(one.content, one.occurred_at)


def _renumbered(before: Memory, after: Memory) -> Memory:
    shown = any(getattr(before, name) != getattr(after, name) for name in _SHOWN_IN_RECALL)
    return after.model_copy(
        update={
            "version": before.version + (memory_document.document(before) != memory_document.document(after)),
            "content_version": before.content_version + shown,
        }
    )


def _after(known: ImportState, line: MemoryLine, before: Memory | None) -> Memory:
    if before is None:
        return _new(known, line)
    told = _told(known, line)
    if told.get("state") is MemoryState.PENDING and before.state is not MemoryState.PENDING:
        # Enriched since the export, or it is not the text that was.
        told = _without(told, _PROGRESS) if _says(before, line.content) else told
    after = _with(before, _runnable(known, told))
    if after == before or "updated_at" in told:
        return after
    return after.model_copy(update={"updated_at": known.now})


def _new(known: ImportState, line: MemoryLine) -> Memory:
    every = {name: getattr(line, name) for name in type(line).model_fields} | _told(known, line)
    every["created_at"] = line.created_at or known.now
    every["last_seen_at"] = line.last_seen_at or every["created_at"]
    scope = known.scope
    every |= {"tenant": scope.tenant, "agent_id": scope.agent_id, "user_id": scope.user_id}
    every |= {"version": 1, "content_version": 1, "source": line.sources[0] if line.sources else None}
    return Memory.model_construct(**_runnable(known, every))


def _told(known: ImportState, line: MemoryLine) -> dict[str, Any]:
    """Return what a line names, its ids as they are here."""
    told = {name: getattr(line, name) for name in line.model_fields_set}
    told = {name: value for name, value in told.items() if value is not None or name not in _NOT_NULL}
    for name in told.keys() & {"superseded_by", "derived_from"}:
        told[name] = [known.ids[reference] for reference in told[name]]
    return told | {"id": known.ids[line.id]}


def _runnable(known: ImportState, told: dict[str, Any]) -> dict[str, Any]:
    """Leave nothing pending where nobody would ever enrich it."""
    if told.get("state") is MemoryState.PENDING and not known.enriching:
        return told | {"state": MemoryState.FINAL}
    return told


def _without(told: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in names}


def _with(before: Memory, told: dict[str, Any]) -> Memory:
    after = before.model_copy(update=told)
    return after.model_copy(update={"source": after.sources[0] if after.sources else None})
