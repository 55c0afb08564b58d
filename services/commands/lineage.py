"""Which live entries stand for which earlier ones: followed through what superseded and derived them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

Json = Mapping[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Entries by id: before a run, after it, and those of the latter that are live."""

    before: dict[str, Json]
    after: dict[str, Json]
    live: dict[str, Json]
    successors: dict[str, set[str]]

    @classmethod
    def of(cls, before: Iterable[Json], after: Iterable[Json]) -> "Lineage":
        """Link the entries of a scope; `after` holds archived ones too."""
        known = {entry["id"]: entry for entry in after}
        live = {id_: entry for id_, entry in known.items() if not entry.get("archived_at")}
        return cls({entry["id"]: entry for entry in before}, known, live, _successors(known.values()))

    def live_successors(self, entry_id: str) -> list[Json]:
        """Return the live entries that stand for an earlier one, itself among them if it lives."""
        reached, waiting = set[str](), [entry_id]
        while waiting:
            one = waiting.pop()
            if one not in reached:
                reached.add(one)
                waiting += self.successors.get(one, ())
        return [self.live[one] for one in sorted(reached) if one in self.live]

    def merged(self) -> set[Pair]:
        """Return the pairs of earlier entries for which one live entry stands."""
        held: dict[str, set[str]] = {}
        for entry_id in self.before:
            for heir in self.live_successors(entry_id):
                held.setdefault(heir["id"], set()).add(entry_id)
        return {pair for ids in held.values() for pair in combinations(sorted(ids), 2)}

    def pruned(self) -> set[str]:
        """Return the earlier entries that nothing live stands for."""
        return {entry_id for entry_id in self.before if not self.live_successors(entry_id)}

    def was_touched(self, entry_id: str) -> bool:
        """Tell whether an entry does not stand as it stood."""
        now, then = self.live.get(entry_id), self.before[entry_id]
        return now is None or any(now[field] != then[field] for field in ("content", "category"))


def _successors(entries: Iterable[Json]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for entry in entries:
        found.setdefault(entry["id"], set()).update(entry.get("superseded_by") or ())
        for source in entry.get("derived_from") or ():
            found.setdefault(source, set()).add(entry["id"])
    return found
