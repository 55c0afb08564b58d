"""What a pass has changed in a graph: the rows of the diff, and the items that were left out."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from shared.dreams.verification.graph_changes import Record
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.memory.graph.entity import Entity

CREATED, WIDENED, INVALIDATED = "created", "widened", "invalidated"


@dataclass(slots=True)
class AppliedGraph:
    """What was changed, as rows of the diff, and the items that were left out."""

    diff: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes by action and record."""
        return dict(Counter(f"{change['record']}_{change['action']}" for change in self.diff))


@dataclass(frozen=True, slots=True)
class GraphPass:
    """One pass of a run, in the transaction that applies it."""

    tx: Transaction
    scope: Scope
    run_id: str
    name: str
    applied: AppliedGraph

    def note(
        self,
        action: str,
        record: Record,
        id_: str,
        *,
        reason: str | None = None,
        before: dict[str, Any] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Note a change, with what it has replaced and by what, for undo."""
        change = {"action": action, "record": record, "record_id": id_, "reason": reason}
        run = {"tenant": self.scope.tenant, "run_id": self.run_id, "pass": self.name}
        self.applied.diff.append({**run, **change, "before": before, "after": after})

    def skip(self, code: RejectionCode, kind: str, *ids: str) -> None:
        """Note that an item is left out."""
        self.applied.skipped.append({"code": code, "kind": kind, **({"ids": list(ids)} if ids else {})})


def state_of(entity: Entity) -> dict[str, Any]:
    """Return what a pass may change of an entity."""
    return entity.model_dump(mode="json", include={"aliases", "metadata", "expired_at", "reason", "type"})
