"""The diff of a run, and what of it can be undone: pure functions over its changes."""

from collections.abc import Mapping, Sequence
from typing import Any

from shared.memory.longterm.memory import Memory

Change = dict[str, Any]

DELETED = "it was deleted since"
"""Why a memory is not undone that is gone."""
SUCCESSOR_STAYS = {
    "archived": "what it was merged into was changed since and stays",
    "closed": "what replaced it was changed since and stays",
}
"""Why a memory is not undone whose successor is not, by the action that gave it the successor."""


class RunDiff:
    """The changes of a run in their order: memories created, reinforced, closed and archived."""

    def __init__(self, run_id: str, changes: Sequence[Change]) -> None:
        self.run_id = run_id
        self.created_ids = [change["entry_id"] for change in changes if change["action"] == "created"]
        created = self._created = set(self.created_ids)
        # Of memories that the run did not create itself.
        self.reinforcements = [
            change
            for change in changes
            if change["action"] == "reinforced" and change["entry_id"] not in created
        ]
        self._all_archivings = [change for change in changes if change["action"] == "archived"]
        self.archivings = [change for change in self._all_archivings if change["entry_id"] not in created]
        self.closings = [
            change for change in changes if change["action"] == "closed" and change["entry_id"] not in created
        ]
        self._last = {change["entry_id"]: change for change in changes}

    @property
    def closed_ids(self) -> list[str]:
        """The ids of the memories that the run closed and did not create."""
        return [change["entry_id"] for change in self.closings]

    @property
    def ids(self) -> list[str]:
        """The ids of all memories that the run changed, sorted."""
        return sorted(self._last)

    def sources_of(self, successor_id: str) -> list[str]:
        """Return the memories that the run merged into one, in one step or more, but did not create."""
        sources: list[str] = []
        for change in self._all_archivings:
            if successor_id in change["successors"] and change["entry_id"] != successor_id:
                entry_id = change["entry_id"]
                sources += self.sources_of(entry_id)
                sources += [] if entry_id in self._created else [entry_id]
        return list(dict.fromkeys(sources))

    def is_untouched(self, memory: Memory) -> bool:
        """Tell whether nobody has changed a memory, or saved its text again, since the run."""
        last = self._last[memory.id]
        is_archived = last["action"] == "archived"
        present = (memory.version, memory.reinforcement_count, memory.archived_at is not None)
        return present == (last["version"], last["reinforcement_count"], is_archived)

    def created_to_keep(self, memories: Mapping[str, Memory]) -> dict[str, str]:
        """Return why created memories are not deleted, by id. `memories` are the present ones by id."""
        kept: dict[str, str] = {}
        for memory_id in reversed(self.created_ids):
            memory, last = memories.get(memory_id), self._last[memory_id]
            if memory is None:
                kept[memory_id] = DELETED
            elif successor_stays(last, kept):
                kept[memory_id] = SUCCESSOR_STAYS[last["action"]]
            elif not self.is_untouched(memory):
                is_saved = memory.version == last["version"] and memory.archived_at is None
                kept[memory_id] = "it was saved again since" if is_saved else "it was changed since"
        return kept


def successor_stays(change: Change, kept: Mapping[str, str]) -> bool:
    """Tell whether a memory can't be undone because of its successor; `kept` says which were not, and why.

    Whoever deletes what a memory was merged into deletes what it said. Whoever deletes what replaced it does
    not: then nothing replaces it.
    """
    reasons = [kept[successor_id] for successor_id in change["successors"] if successor_id in kept]
    return any(change["action"] != "closed" or reason != DELETED for reason in reasons)
