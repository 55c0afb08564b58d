"""Issue 3: what the shipped example asks of a dream can be done, and passes both the check and the score."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from services.commands.dream_score import score
from shared.conversation.feedback.detect import is_correction
from shared.dreams.verification.check import CheckedPlan, Snapshot, check
from shared.dreams.verification.plan import Deletion, Plan, Replacement
from shared.foundation.scope import Scope
from shared.memory.longterm.memory import Memory

Json = dict[str, Any]
EXAMPLE = Path(__file__).parents[3] / "examples" / "dream"
SCOPE: Json = json.loads((EXAMPLE / "scope.json").read_text(encoding="utf-8"))
EXPECTED: Json = json.loads((EXAMPLE / "expected.json").read_text(encoding="utf-8"))

# What a good model writes for each group of `merge`, in their order.
MERGED = (
    "The new web shop, Prism, goes live on 1 December 2026.",
    "Prism takes payments and refunds through Stripe, account acct_1N9xQ2.",
    "Harbor, the warehouse move, brings the stock of 4 200 pallets from Gothenburg to Malmö.",
    "Supplier Kessler Glas: Hafenstraße 3, 33607 Bielefeld since 1 August 2026, once Industrieweg 12, 33602.",
    "Customer support answers on weekdays from 9:00 to 17:00, on Fridays only until 15:00.",
    "Prism charges 19 % VAT on sales to Germany, no longer 16 %; the rates stand in tax_rates.csv.",
    "Mira prefers short, brief answers: three sentences at most.",
    "Mira prefers the train to planes for trips under 6 hours.",
    "Since 1 September 2026 Mira lives at Kaptensgatan 8, 211 41 Malmö; before, at Ängelholmsgatan 14.",
    "Mira is allergic to nuts, can't eat hazelnuts among them, and carries an EpiPen in her backpack.",
    "Mira wants invoices under 200 EUR paid right away without being asked.",
    "Jonas wants all reports as PDF, never as Word.",
)
LEARNT = {
    "jonas": "Don't quote VAT for Prism because rates change — instead read tax_rates.csv before an invoice.",
    "mira": "Don't book Mira's calls in UTC because she lives in Malmö — instead use Europe/Stockholm.",
}


def _entry(told: Json) -> Memory:
    rest = dict.fromkeys(("occurred_at", "source", "updated_at", "archived_at", "archive_reason"))
    lists: Json = {"sources": [], "superseded_by": [], "derived_from": []}
    row = {"state": "final", "agent_id": "office", "tenant": "t", "version": 1, "content_version": 1}
    return Memory.model_validate({**row, **rest, **lists, **told})


def _plan(entries: Iterable[Memory]) -> Plan:
    mine = {entry.id: entry for entry in entries}
    merges = [
        Replacement(text, None, (), tuple(group["ids"]), None)
        for text, group in zip(MERGED, EXPECTED["merge"], strict=True)
        if group["ids"][0] in mine
    ]
    mended = [
        Replacement(mine[told["id"]].content, "user-preferences/music", (), (told["id"],), None)
        for told in EXPECTED["categories"]
        if told["id"] in mine
    ]
    passed = [Deletion(one, "ephemeral") for one in EXPECTED["may_prune"] if _has_passed(mine.get(one))]
    return Plan(tuple(passed), (*merges, *mended))


def _has_passed(entry: Memory | None) -> bool:
    return entry is not None and "IGNORE ALL" not in entry.content


def _outcome(entries: list[Memory], checked: CheckedPlan) -> list[Json]:
    """Return the scope as it stands when the checked plan is done."""
    after = {entry.id: entry.model_dump(mode="json") for entry in entries}
    user_id = entries[0].user_id
    for number, merge in enumerate(checked.merges):
        made = f"{user_id}-{number}"
        for source in merge.source_ids:
            after[source] |= {"archived_at": "now", "superseded_by": [made]}
        fields = merge.fields
        after[made] = {
            "id": made,
            "user_id": user_id,
            "content": fields.content,
            "category": fields.category,
            "tags": list(fields.tags),
            "metadata": dict(fields.metadata),
            "derived_from": list(merge.source_ids),
        }
    for prune in checked.prunes:
        after[prune.id] |= {"archived_at": "now"}
    return list(after.values())


def _learnt() -> list[Json]:
    common = {"category": "anti-patterns/work", "tags": ["anti-pattern"], "metadata": {}}
    return [
        {"id": f"learnt-{user}", "user_id": user, "content": text, **common} for user, text in LEARNT.items()
    ]


def test_a_plan_that_does_all_that_is_expected_is_accepted_whole_and_scores_full_marks() -> None:
    everything = [_entry(told) for told in SCOPE["entries"]]
    after = _learnt()
    for user_id in (None, "mira", "jonas"):
        entries = [entry for entry in everything if entry.user_id == user_id]
        snapshot = Snapshot(Scope("t", "office", user_id), {one.id: one for one in entries}, len(entries))
        checked = check(_plan(entries), snapshot)
        assert checked.rejections == ()
        after += _outcome(entries, checked)
    told = score(SCOPE["entries"], after, EXPECTED)
    assert (told.precision, told.recall, told.is_safe) == (1.0, 1.0, True), told
    assert [told.anti_patterns_missing, told.categories_left, told.missed_merges] == [[], [], []]


def test_the_examples_corrections_are_detected_and_its_polite_refusals_are_not() -> None:
    said = [turn for one in SCOPE["sessions"] for turn in one["turns"] if turn["role"] == "user"]
    found = [turn["content"] for turn in said if is_correction(turn["content"])]
    assert [text[:12] for text in found] == ["No, that's w", "That's wrong"]
