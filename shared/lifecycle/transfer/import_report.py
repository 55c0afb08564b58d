"""The report of an import: counts, and every line that was not simply stored."""

from dataclasses import dataclass, field
from typing import Any

from shared.lifecycle.transfer.import_plan import ImportPlan


@dataclass(slots=True)
class Report:
    """The counts and particulars of an import. `refused` are lines that the caller may not import."""

    created: int = 0
    updated: int = 0
    skipped: int = 0
    remapped: dict[str, str] = field(default_factory=dict)
    tombstoned: list[str] = field(default_factory=list)
    duplicates: list[dict[str, str]] = field(default_factory=list)
    malformed: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def add(self, plan: ImportPlan) -> None:
        """Add the outcome of a batch."""
        self.created += len(plan.created)
        self.updated += len(plan.updated)
        self.skipped += plan.skipped
        self.remapped |= plan.remapped
        self.tombstoned += plan.tombstoned
        self.refused += ({"line": line.number, "rule": rule} for line, rule in plan.refused)
        self.duplicates += ({"id": line.id, "of": duplicate_id} for line, duplicate_id in plan.duplicates)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        names = ("created", "updated", "skipped", "remapped", "tombstoned", "duplicates")
        not_stored = sorted([*self.malformed, *self.refused], key=lambda item: item["line"])
        return {name: getattr(self, name) for name in names} | {"malformed": not_stored}
