"""What an import did, line by line where it was not simply stored."""

from dataclasses import dataclass, field
from typing import Any

from shared.lifecycle.transfer.import_plan import ImportPlan


@dataclass(slots=True)
class Report:
    """Counts of what was stored, and what the importer should know."""

    created: int = 0
    updated: int = 0
    skipped: int = 0
    remapped: dict[str, str] = field(default_factory=dict)
    tombstoned: list[str] = field(default_factory=list)
    duplicates: list[dict[str, str]] = field(default_factory=list)
    malformed: list[dict[str, Any]] = field(default_factory=list)

    def add(self, done: ImportPlan) -> None:
        """Add what was done with a batch."""
        self.created += len(done.created)
        self.updated += len(done.updated)
        self.skipped += done.skipped
        self.remapped |= done.remapped
        self.tombstoned += done.tombstoned
        self.duplicates += ({"id": line.id, "of": twin} for line, twin in done.duplicates)

    def as_json(self) -> dict[str, Any]:
        """Return the report as the caller reads it."""
        names = ("created", "updated", "skipped", "remapped", "tombstoned", "duplicates", "malformed")
        return {name: getattr(self, name) for name in names}
