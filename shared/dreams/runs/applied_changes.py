"""What a pass has changed: the memories to index again, and the rows of the diff."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.dreams.graph.applied_graph import AppliedGraph
from shared.dreams.runs.dream_run import Run
from shared.foundation.stages import DreamPass
from shared.memory.longterm.memory import Memory

ACTOR = "dream"
"""Who has changed a memory, in its history."""


@dataclass(slots=True)
class AppliedChanges:
    """The effect of a pass: memories to index again, the diff, and the items that were skipped."""

    changed_memories: dict[str, Memory] = field(default_factory=dict)
    diff: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)
    # The memories that stand for the rows of creations by now, by the ids of the rows.
    created: dict[str, Memory] = field(default_factory=dict)
    # What was changed in the graph.
    graph: AppliedGraph = field(default_factory=AppliedGraph)
    # The number of proposals about skills, by what became of them.
    skill_counts: dict[str, int] = field(default_factory=dict)
    # The pairs of memories that contest each other, and the proposals that wait for a judge or a caller.
    contested_count: int = 0
    held_count: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The number of changes by action: created, archived, skill_proposed, …; of the graph by record."""
        doubted = {"contested": self.contested_count, "held": self.held_count}
        changes = Counter(change["action"] for change in self.diff) + Counter(doubted)
        return dict(changes) | self.graph.counts | self.skill_counts


def reason_of(run_id: str, name: str) -> str:
    """Return the reason in the history of a memory that a pass created, reinforced or closed."""
    return f"dream {run_id}, {name}"


def change_row(
    run: Run,
    name: DreamPass,
    action: str,
    memory: Memory,
    before: Memory | None,
    successors: Sequence[str] = (),
    reason: str | None = None,
) -> dict[str, Any]:
    """Return a change of one memory as a row of the diff, with what undo needs."""
    return {
        "tenant": run.tenant,
        "run_id": run.id,
        "pass": name,
        "action": action,
        "entry_id": memory.id,
        "version": memory.version,
        "reason": reason,
        "previous_state": before.state if before else None,
        "previous_valid_until": before.valid_until if before else None,
        "reinforcement_count": memory.reinforcement_count,
        "added_count": 0,
        "added_sources": None,
        "successors": list(successors),
    }


def reinforcement_row(
    run: Run, name: DreamPass, before: Memory, after: Memory, added_count: int
) -> dict[str, Any]:
    """Return a reinforcement as a row of the diff, with the observations and sources that it added."""
    known = set(before.sources)
    added_sources = [source.model_dump() for source in after.sources if source not in known]
    added = {"added_count": added_count, "added_sources": added_sources or None}
    return change_row(run, name, "reinforced", after, None) | added
