"""Find which live memories replace which earlier ones, over any number of merges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Json = Mapping[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Memories by id: those before a run, those after it, and the live ones among the latter."""

    before: dict[str, Json]
    after: dict[str, Json]
    live: dict[str, Json]
    successors: dict[str, set[str]]

    @classmethod
    def build(cls, before: Iterable[Json], after: Iterable[Json]) -> "Lineage":
        """Link the memories of a scope; `after` includes archived ones."""
        after_by_id = {memory["id"]: memory for memory in after}
        live = {id_: memory for id_, memory in after_by_id.items() if not memory.get("archived_at")}
        before_by_id = {memory["id"]: memory for memory in before}
        return cls(before_by_id, after_by_id, live, _direct_successors(after_by_id.values()))

    def live_successors(self, memory_id: str) -> list[Json]:
        """Return the live memories that replace an earlier one; itself, if it is live."""
        reached_ids, open_ids = set[str](), [memory_id]
        while open_ids:
            id_ = open_ids.pop()
            if id_ not in reached_ids:
                reached_ids.add(id_)
                open_ids += self.successors.get(id_, ())
        return [self.live[id_] for id_ in sorted(reached_ids) if id_ in self.live]

    def merged_pairs(self) -> set[Pair]:
        """Return the pairs of earlier memories that the same live memory replaces."""
        sources_by_successor: dict[str, set[str]] = {}
        for memory_id in self.before:
            for successor in self.live_successors(memory_id):
                sources_by_successor.setdefault(successor["id"], set()).add(memory_id)
        return {pair for ids in sources_by_successor.values() for pair in combinations(sorted(ids), 2)}

    def pruned(self) -> set[str]:
        """Return the ids of earlier memories that no live memory replaces."""
        return {memory_id for memory_id in self.before if not self.live_successors(memory_id)}

    def was_touched(self, memory_id: str) -> bool:
        """Tell whether an earlier memory is no longer live or has another text or category."""
        current, earlier = self.live.get(memory_id), self.before[memory_id]
        return current is None or any(current[field] != earlier[field] for field in ("content", "category"))


def _direct_successors(memories: Iterable[Json]) -> dict[str, set[str]]:
    successors: dict[str, set[str]] = {}
    for memory in memories:
        successors.setdefault(memory["id"], set()).update(memory.get("superseded_by") or ())
        for source_id in memory.get("derived_from") or ():
            successors.setdefault(source_id, set()).add(memory["id"])
    return successors
