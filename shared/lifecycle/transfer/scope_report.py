"""The report of an import of a scope: counts for each kind, and every line that was not simply stored."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from shared.lifecycle.transfer.import_report import Report
from shared.lifecycle.transfer.row_kind import LineKind

_COUNTS = ("created", "updated", "skipped")


@dataclass(slots=True)
class KindReport:
    """What became of the lines of one kind.

    `kept` are rows that exist with another content, `tombstoned` those that were deleted on purpose.
    """

    created: int = 0
    updated: int = 0
    skipped: int = 0
    kept: list[str] = field(default_factory=list)
    remapped: dict[str, str] = field(default_factory=dict)
    tombstoned: list[str] = field(default_factory=list)

    def add(self, other: "KindReport") -> None:
        """Add the outcome of a batch."""
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kept += other.kept
        self.remapped |= other.remapped
        self.tombstoned += other.tombstoned

    def as_json(self) -> dict[str, Any]:
        """Return the counts and the ids as JSON."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return counts | {"kept": self.kept, "remapped": self.remapped, "tombstoned": self.tombstoned}


@dataclass(slots=True)
class ScopeReport:
    """The particulars of an import; `memories` are those of the lines of memories."""

    memories: Report = field(default_factory=Report)
    rows: dict[LineKind, KindReport] = field(default_factory=dict)
    malformed: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: LineKind) -> KindReport:
        """Return the part of one kind of rows."""
        return self.rows.setdefault(kind, KindReport())

    def refuse(self, numbers: Iterable[int], kind: LineKind, rule: str) -> None:
        """Note lines that are well-formed but could not be stored, and why."""
        self.refused += ({"line": number, "kind": kind, "rule": rule} for number in numbers)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON: that of an import of memories, over all kinds, and each kind's own."""
        memories = KindReport(
            self.memories.created,
            self.memories.updated,
            self.memories.skipped,
            [],
            self.memories.remapped,
            self.memories.tombstoned,
        )
        of_memories = [{**item, "kind": LineKind.MEMORY} for item in self.memories.refused]
        reported = {LineKind.MEMORY: memories, **self.rows}
        kinds = {kind: reported[kind] for kind in LineKind if kind in reported}
        return {
            **{name: sum(getattr(part, name) for part in kinds.values()) for name in _COUNTS},
            "remapped": {old: new for part in kinds.values() for old, new in part.remapped.items()},
            "tombstoned": [id_ for part in kinds.values() for id_ in part.tombstoned],
            "duplicates": self.memories.duplicates,
            "malformed": sorted(self.malformed, key=lambda item: item["line"]),
            "refused": sorted([*self.refused, *of_memories], key=lambda item: item["line"]),
            "kinds": {kind.value: part.as_json() for kind, part in kinds.items()},
        }
