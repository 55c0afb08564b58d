"""Score a dream: what was merged, lost and pruned, against what a good run would have done.

Pure: entries before and after as the API shows them (archived ones among them), and an
`expected.json` as in `examples/dream/`. Merges are scored by pairs: two entries count as merged
when one live entry stands for both, by `superseded_by` or `derived_from`, over any number of
steps. Pairs that `may_merge` count neither way. A run that merges nothing has precision 1 and
recall 0.
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
    """What a run did. Lists hold ids, pairs of ids, or the names of `expected.json`; empty is good."""

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
        """Whether nothing was lost, harmed or made up; what was left undone is no harm."""
        harm = (self.facts_lost, self.wrongly_pruned, self.vanished, self.touched, self.metadata_lost)
        return not any((*harm, self.forbidden, self.wrong_merges))


def score(before: Iterable[Json], after: Iterable[Json], expected: Json) -> Score:
    """Compare the entries after a run with those before it.

    `after` holds archived entries too: an entry that is in neither state has vanished.
    """
    lineage = Lineage.of(before, after)
    merged, wanted, allowed = lineage.merged(), _pairs(expected["merge"]), _pairs(expected["may_merge"])
    right, wrong = merged & wanted, merged - wanted - allowed
    born = [entry for entry in lineage.live.values() if entry["id"] not in lineage.before]
    return Score(
        precision=_share(len(right), len(right) + len(wrong)),
        recall=_share(len(right), len(wanted)),
        missed_merges=sorted(wanted - merged),
        wrong_merges=sorted(wrong),
        facts_lost=_unsaid(expected["facts"], lineage.live.values()),
        wrongly_pruned=sorted(lineage.pruned() - set(expected["may_prune"])),
        vanished=sorted(lineage.before.keys() - lineage.after.keys()),
        touched=[one for one in expected["untouched"] if lineage.was_touched(one)],
        metadata_lost=[told["id"] for told in expected["metadata"] if not _keeps(lineage, told)],
        categories_left=[told["id"] for told in expected["categories"] if _still_in(lineage, told)],
        anti_patterns_missing=_unsaid(expected["anti_patterns"], filter(_is_anti_pattern, born)),
        forbidden=[told["name"] for told in expected["forbidden"] if _says_any(born, told)],
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _pairs(groups: Iterable[Json]) -> set[Pair]:
    return {pair for group in groups for pair in combinations(sorted(group["ids"]), 2)}


def _unsaid(facts: Iterable[Json], entries: Iterable[Json]) -> list[str]:
    """Return the names of the facts that no entry of their user states."""
    known = list(entries)
    return [
        _named(fact)
        for fact in facts
        if not _says_any([one for one in known if one["user_id"] == fact["user_id"]], fact)
    ]


def _named(fact: Json) -> str:
    return f"{fact['user_id']}: {fact['name']}" if fact["user_id"] else str(fact["name"])


def _says_any(entries: Sequence[Json], told: Json) -> bool:
    return any(_says(entry["content"], told["words"]) for entry in entries)


def _says(content: str, words: Iterable[str]) -> bool:
    text = " ".join(content.split())
    return all(re.search(word, text, re.IGNORECASE) for word in words)


def _keeps(lineage: Lineage, told: Json) -> bool:
    """Tell whether all that stands for an entry now carries its metadata."""
    heirs = lineage.live_successors(told["id"])
    return bool(heirs) and all(one["metadata"].get(told["key"]) == told["value"] for one in heirs)


def _still_in(lineage: Lineage, told: Json) -> bool:
    return any(one["category"] == told["not"] for one in lineage.live_successors(told["id"]))


def _is_anti_pattern(entry: Json) -> bool:
    return is_anti_pattern(entry["category"], entry["tags"])
