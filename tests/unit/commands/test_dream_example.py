"""The expected result of the shipped example passes both the check and the score."""

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
LEARNED = {
    "jonas": "Don't quote VAT for Prism because rates change — instead read tax_rates.csv before an invoice.",
    "mira": "Don't book Mira's calls in UTC because she lives in Malmö — instead use Europe/Stockholm.",
}


def _memory(row: Json) -> Memory:
    optional = dict.fromkeys(("occurred_at", "source", "updated_at", "archived_at", "archive_reason"))
    lists: Json = {"sources": [], "superseded_by": [], "derived_from": []}
    defaults = {"state": "final", "agent_id": "office", "tenant": "t", "version": 1, "content_version": 1}
    return Memory.model_validate({**defaults, **optional, **lists, **row})


def _plan(memories: Iterable[Memory]) -> Plan:
    by_id = {memory.id: memory for memory in memories}
    merges = [
        Replacement(text, None, (), tuple(group["ids"]), None)
        for text, group in zip(MERGED, EXPECTED["merge"], strict=True)
        if group["ids"][0] in by_id
    ]
    recategorized = [
        Replacement(by_id[row["id"]].content, "music", (), (row["id"],), None)
        for row in EXPECTED["categories"]
        if row["id"] in by_id
    ]
    deletions = [
        Deletion(memory_id, "ephemeral")
        for memory_id in EXPECTED["may_prune"]
        if _is_outdated(by_id.get(memory_id))
    ]
    return Plan(tuple(deletions), (*merges, *recategorized))


def _is_outdated(memory: Memory | None) -> bool:
    return memory is not None and "IGNORE ALL" not in memory.content


def _outcome(memories: list[Memory], checked: CheckedPlan) -> list[Json]:
    """Return the scope after the checked plan is applied."""
    after = {memory.id: memory.model_dump(mode="json") for memory in memories}
    user_id = memories[0].user_id
    for number, merge in enumerate(checked.merges):
        successor_id = f"{user_id}-{number}"
        for source in merge.source_ids:
            after[source] |= {"archived_at": "now", "superseded_by": [successor_id]}
        fields = merge.fields
        after[successor_id] = {
            "id": successor_id,
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


def _learned() -> list[Json]:
    common = {"category": "anti-patterns/work", "tags": ["anti-pattern"], "metadata": {}}
    return [
        {"id": f"learnt-{user}", "user_id": user, "content": text, **common} for user, text in LEARNED.items()
    ]


def test_the_expected_plan_is_accepted_completely_and_scores_full_marks() -> None:
    all_memories = [_memory(row) for row in SCOPE["entries"]]
    after = _learned()
    for user_id in (None, "mira", "jonas"):
        memories = [memory for memory in all_memories if memory.user_id == user_id]
        snapshot = Snapshot(
            Scope("t", "office", user_id), {memory.id: memory for memory in memories}, len(memories)
        )
        checked = check(_plan(memories), snapshot)
        assert checked.rejections == ()
        after += _outcome(memories, checked)
    result = score(SCOPE["entries"], after, EXPECTED)
    assert (result.precision, result.recall, result.is_safe) == (1.0, 1.0, True), result
    assert [result.anti_patterns_missing, result.categories_left, result.missed_merges] == [[], [], []]


def test_the_examples_corrections_are_detected_and_its_polite_refusals_are_not() -> None:
    user_turns = [
        turn for session in SCOPE["sessions"] for turn in session["turns"] if turn["role"] == "user"
    ]
    corrections = [turn["content"] for turn in user_turns if is_correction(turn["content"])]
    assert [text[:12] for text in corrections] == ["No, that's w", "That's wrong"]
