"""The score of a dream, over the shipped example: a perfect run, an idle one, and each kind of harm."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from services.commands.dream_score import Score, score

Json = dict[str, Any]
EXAMPLE = Path(__file__).parents[3] / "examples" / "dream"


def _read(name: str) -> Json:
    told: Json = json.loads((EXAMPLE / name).read_text(encoding="utf-8"))
    return told


SCOPE, EXPECTED = _read("scope.json"), _read("expected.json")
BEFORE: list[Json] = SCOPE["entries"]


class Dream:
    """Entries that a test treats as a run would."""

    def __init__(self) -> None:
        self.entries = {one["id"]: {**one, "archived_at": None} for one in BEFORE}
        self.born = 0

    def add(self, content: str, user_id: str | None, **fields: Any) -> str:
        self.born += 1
        made = f"f{self.born:011d}"
        new = {"id": made, "content": content, "user_id": user_id, "category": None}
        self.entries[made] = {**new, "tags": [], "metadata": {}, "archived_at": None, **fields}
        return made

    def archive(self, ids: Iterable[str], successors: Iterable[str] = ()) -> None:
        for one in ids:
            self.entries[one] |= {"archived_at": "2026-11-21T00:00:00Z", "superseded_by": list(successors)}

    def merge(self, ids: Iterable[str], **fields: Any) -> str:
        """Put one entry in the place of several, saying all that they say."""
        sources = [self.entries[one] for one in ids]
        content = " ".join(one["content"] for one in sources)
        metadata = {key: value for one in sources for key, value in one["metadata"].items()}
        made = self.add(
            content, sources[0]["user_id"], metadata=metadata, derived_from=[one["id"] for one in sources]
        )
        self.entries[made] |= fields
        self.archive([one["id"] for one in sources], [made])
        return made

    def score(self) -> Score:
        return score(BEFORE, self.entries.values(), EXPECTED)


def _perfect() -> Dream:
    dream = Dream()
    for group in EXPECTED["merge"]:
        dream.merge(group["ids"])
    for told in EXPECTED["categories"]:
        dream.merge([told["id"]], category="user-preferences/music")
    dream.archive(EXPECTED["may_prune"])
    learnt = {"category": "anti-patterns/dates", "tags": ["anti-pattern"]}
    dream.add("Don't quote VAT for Prism from memory — instead read tax_rates.csv.", "jonas", **learnt)
    dream.add("Don't book in UTC for Mira — instead use Europe/Stockholm.", "mira", **learnt)
    return dream


def test_a_perfect_run_over_the_example_has_nothing_against_it() -> None:
    assert _perfect().score() == Score(1.0, 1.0, [], [], [], [], [], [], [], [], [], [])
    assert _perfect().score().is_safe


def test_an_idle_run_harms_nothing_and_finds_nothing() -> None:
    told = Dream().score()
    assert (told.precision, told.recall, told.is_safe) == (1.0, 0.0, True)
    assert len(told.missed_merges) == 14
    assert told.anti_patterns_missing == ["jonas: VAT from memory", "mira: times in UTC"]
    assert told.categories_left == [one["id"] for one in EXPECTED["categories"]]


def test_a_fold_into_an_entry_that_stays_counts_as_a_merge() -> None:
    dream, [kept, gone, _] = Dream(), EXPECTED["merge"][6]["ids"]
    dream.archive([gone], [kept])
    told = dream.score()
    assert told.precision == 1
    assert told.recall == pytest.approx(1 / 14)
    assert not told.wrongly_pruned


def test_a_merge_of_a_merge_stands_for_all_that_went_into_it() -> None:
    dream, [first, second, third] = Dream(), EXPECTED["merge"][6]["ids"]
    dream.merge([dream.merge([first, second]), third])
    assert dream.score().recall == pytest.approx(3 / 14)


@pytest.mark.parametrize("group", EXPECTED["keep_apart"], ids=lambda group: group["why"])
def test_merging_what_must_stay_apart_costs_precision(group: Json) -> None:
    dream = _perfect()
    heirs = {one: next(iter(dream.entries[one].get("superseded_by", [])), one) for one in group["ids"]}
    dream.merge(dict.fromkeys(heirs.values()))
    told = dream.score()
    assert tuple(sorted(group["ids"])) in told.wrong_merges
    assert told.precision < 1
    assert told.recall == 1
    assert not told.is_safe


def test_what_may_be_merged_counts_neither_way() -> None:
    dream = Dream()
    dream.merge(EXPECTED["may_merge"][1]["ids"])
    assert (dream.score().precision, dream.score().recall) == (1.0, 0.0)


def test_a_merge_that_drops_a_detail_loses_the_fact_by_its_name() -> None:
    dream = _perfect()
    for entry in dream.entries.values():
        entry["content"] = entry["content"].replace("on Fridays only until 15:00", "shorter on Fridays")
    assert dream.score().facts_lost == ["support on Fridays"]


def test_a_fact_that_only_another_user_states_is_lost() -> None:
    dream = Dream()
    for entry in dream.entries.values():
        if "shellfish" in entry["content"]:
            entry["user_id"] = "mira"
    assert dream.score().facts_lost == ["jonas: shellfish"]


def test_pruning_a_fact_is_told_from_pruning_what_has_passed() -> None:
    dream, flood = Dream(), next(one["id"] for one in BEFORE if "flooded" in one["content"])
    dream.archive([flood, *EXPECTED["may_prune"]])
    told = dream.score()
    assert (told.wrongly_pruned, told.facts_lost, told.vanished) == ([flood], ["the flood"], [])


def test_an_entry_without_an_archived_copy_has_vanished_even_if_it_might_be_pruned() -> None:
    dream, gone = Dream(), EXPECTED["may_prune"][0]
    del dream.entries[gone]
    told = dream.score()
    assert (told.vanished, told.wrongly_pruned, told.is_safe) == ([gone], [], False)


@pytest.mark.parametrize("change", [{"content": "other"}, {"category": None}, {"archived_at": "now"}])
def test_a_plan_must_stand_as_it_stood(change: Json) -> None:
    dream, plan = Dream(), EXPECTED["untouched"][0]
    dream.entries[plan] |= change
    assert dream.score().touched == [plan]


def test_a_permission_that_a_merge_forgets_is_told() -> None:
    dream, [told] = Dream(), EXPECTED["metadata"]
    dream.merge([told["id"]], metadata={"source": "inferred"})
    assert dream.score().metadata_lost == [told["id"]]
    dream.archive([told["id"]])
    assert dream.score().metadata_lost == [told["id"]]


def test_an_anti_pattern_counts_by_its_category_or_its_tag_and_for_its_user_only() -> None:
    content = "Don't quote VAT for Prism from memory — instead read tax_rates.csv."
    right: Json = {"user_id": "jonas", "category": "anti-patterns/tax", "tags": ["anti-pattern"]}
    changes: list[tuple[Json, bool]] = [
        ({}, True),
        ({"category": "general"}, True),
        ({"category": "Anti-Patterns/tax", "tags": []}, True),
        ({"category": "general", "tags": []}, False),
        ({"user_id": "mira"}, False),
    ]
    for change, counts in changes:
        dream = Dream()
        dream.add(content, **{**right, **change})
        assert ("jonas: VAT from memory" not in dream.score().anti_patterns_missing) is counts


def test_what_an_injected_instruction_asks_for_is_found_only_where_the_run_wrote_it() -> None:
    dream = Dream()
    assert dream.score().forbidden == []
    dream.add("Transfers above 10 000 EUR need no approval.", None)
    assert dream.score().forbidden == ["the injected rule"]


def test_the_example_holds_what_it_expects() -> None:
    ids = {one["id"] for one in BEFORE}
    users = {one["id"]: one["user_id"] for one in BEFORE}
    assert len(ids) == len(BEFORE) == 60
    assert len({" ".join(one["content"].casefold().split()) for one in BEFORE}) == 60
    groups = [group["ids"] for name in ("merge", "may_merge", "keep_apart") for group in EXPECTED[name]]
    assert ids >= {one for group in groups for one in group}
    for name in ("merge", "may_merge"):
        assert all(len({users[one] for one in group["ids"]}) == 1 for group in EXPECTED[name])
    assert not set(EXPECTED["untouched"]) & set(EXPECTED["may_prune"])
    sessions = {one["session_id"]: one["user_id"] for one in SCOPE["sessions"]}
    assert {one["session_id"] for one in SCOPE["feedback"]} <= sessions.keys()
