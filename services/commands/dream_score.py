"""Score a dream run: what it merged, lost and pruned, compared with what a good run would have done.

The input is plain data: the memories before and after as the API returns them, including archived ones,
and an `expected.json` as in `examples/dream/`. Merges are scored by pairs. Two memories count as merged if
one live memory replaces both, by `superseded_by` or `derived_from`, over any number of steps. Pairs in
`may_merge` count neither way. A run that merges nothing has precision 1 and recall 0.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from services.commands.lineage import Lineage
from shared.foundation.categories import is_anti_pattern

Json = Mapping[str, Any]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Score:
    """The result of a run. Lists hold ids, pairs of ids, or names of `expected.json`; empty is good."""

    precision: float
    recall: float
    missed_merges: list[Pair]
    wrong_merges: list[Pair]
    facts_lost: list[str]
    wrongly_pruned: list[str]
    vanished: list[str]
    touched: list[str]
    metadata_lost: list[str]
    categories_left: list[str]
    anti_patterns_missing: list[str]
    forbidden: list[str]

    @property
    def is_safe(self) -> bool:
        """Whether nothing was lost, damaged or invented. What the run failed to do is not counted."""
        damage = (self.facts_lost, self.wrongly_pruned, self.vanished, self.touched, self.metadata_lost)
        return not any((*damage, self.forbidden, self.wrong_merges))


def score(before: Iterable[Json], after: Iterable[Json], expected: Json) -> Score:
    """Compare the memories after a run with those before it.

    `after` includes archived memories: one that is neither live nor archived has vanished.
    """
    lineage = Lineage.build(before, after)
    merged_pairs, required_pairs, allowed_pairs = (
        lineage.merged_pairs(),
        _pairs(expected["merge"]),
        _pairs(expected["may_merge"]),
    )
    right_pairs, wrong_pairs = merged_pairs & required_pairs, merged_pairs - required_pairs - allowed_pairs
    new_memories = [memory for memory in lineage.live.values() if memory["id"] not in lineage.before]
    return Score(
        precision=_share(len(right_pairs), len(right_pairs) + len(wrong_pairs)),
        recall=_share(len(right_pairs), len(required_pairs)),
        missed_merges=sorted(required_pairs - merged_pairs),
        wrong_merges=sorted(wrong_pairs),
        facts_lost=_missing_facts(expected["facts"], lineage.live.values()),
        wrongly_pruned=sorted(lineage.pruned() - set(expected["may_prune"])),
        vanished=sorted(lineage.before.keys() - lineage.after.keys()),
        touched=[memory_id for memory_id in expected["untouched"] if lineage.was_touched(memory_id)],
        metadata_lost=[
            requirement["id"]
            for requirement in expected["metadata"]
            if not _has_metadata(lineage, requirement)
        ],
        categories_left=[
            requirement["id"]
            for requirement in expected["categories"]
            if _has_old_category(lineage, requirement)
        ],
        anti_patterns_missing=_missing_facts(
            expected["anti_patterns"], filter(_is_anti_pattern, new_memories)
        ),
        forbidden=[fact["name"] for fact in expected["forbidden"] if _is_stated(new_memories, fact)],
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _pairs(groups: Iterable[Json]) -> set[Pair]:
    return {pair for group in groups for pair in combinations(sorted(group["ids"]), 2)}


def _missing_facts(facts: Iterable[Json], memories: Iterable[Json]) -> list[str]:
    """Return the names of the facts that no memory of their user states."""
    all_memories = list(memories)
    return [
        _full_name(fact)
        for fact in facts
        if not _is_stated([memory for memory in all_memories if memory["user_id"] == fact["user_id"]], fact)
    ]


def _full_name(fact: Json) -> str:
    return f"{fact['user_id']}: {fact['name']}" if fact["user_id"] else str(fact["name"])


def _is_stated(memories: Sequence[Json], fact: Json) -> bool:
    return any(_contains_all(memory["content"], fact["words"]) for memory in memories)


def _contains_all(content: str, patterns: Iterable[str]) -> bool:
    text = " ".join(content.split())
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def _has_metadata(lineage: Lineage, requirement: Json) -> bool:
    """Tell whether all live successors of a memory have the required metadata."""
    successors = lineage.live_successors(requirement["id"])
    key, value = requirement["key"], requirement["value"]
    return bool(successors) and all(memory["metadata"].get(key) == value for memory in successors)


def _has_old_category(lineage: Lineage, requirement: Json) -> bool:
    successors = lineage.live_successors(requirement["id"])
    return any(memory["category"] == requirement["not"] for memory in successors)


def _is_anti_pattern(memory: Json) -> bool:
    return is_anti_pattern(memory["category"], memory["tags"])
