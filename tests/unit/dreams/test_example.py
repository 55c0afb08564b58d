"""What a sensible model writes about examples/dream is accepted; a tempting mistake waits, or is rejected."""

import json
from pathlib import Path
from typing import Any

import pytest

from shared.dreams.verification.check import CheckedPlan, Snapshot, check
from shared.foundation.scope import Scope
from shared.memory.longterm.memory import Memory
from shared.verification.decision import Fate, decide_by_signs
from shared.verification.signs import SignFinder
from tests.unit.dreams.builders import SCOPE, memory, plan, replacement
from workers.dream.decided_merges import merged_statement

ROWS = json.loads((Path(__file__).parents[3] / "examples" / "dream" / "scope.json").read_text("utf-8"))[
    "entries"
]


def _memory(number: int, row: dict[str, Any]) -> Memory:
    fields = {key: row[key] for key in row if key in Memory.model_fields}
    return memory(number, **fields | {"user_id": row.get("user_id"), "agent_id": SCOPE.agent_id})


MEMORIES = {row["id"]: _memory(number, row) for number, row in enumerate(ROWS)}
SENSIBLE = [
    ("The new web shop, Prism, goes live on 1 December 2026.", "c1 c2"),
    ("Prism takes payments through Stripe, account acct_1N9xQ2; refunds go the same way.", "c3 c4"),
    ("Harbor, the warehouse move, takes the stock, 4 200 pallets, from Gothenburg to Malmö.", "c5 c6"),
    (
        "On 1 August 2026 Kessler Glas moved from Industrieweg 12, 33602 Bielefeld, to Hafenstraße 3, 33607.",
        "c8 c9",
    ),
    ("Customer support answers on weekdays from 9:00 to 17:00, on Fridays only until 15:00.", "c10 c11"),
    (
        "Prism charges 19 % VAT on sales to Germany, no longer 16 %; the rates stand in tax_rates.csv.",
        "c12 c13",
    ),
    ("Mira likes short, brief answers: replies of three sentences at most.", "a1 a2 a3"),
    ("For journeys and trips of less than (under) 6 hours Mira prefers to take trains to planes.", "a4 a5"),
    (
        "Since 1 September 2026 Mira lives at Kaptensgatan 8, 211 41 Malmö; before, at Ängelholmsgatan 14.",
        "a6 a7",
    ),
    ("Mira is allergic to nuts, hazelnuts included, and carries an EpiPen in her backpack.", "a8 a9"),
    ("Mira wants invoices under 200 EUR paid right away, without being asked.", "a10 a11"),
    ("Jonas wants all reports as PDF, never Word.", "b5 b6"),
]
TEMPTING = [
    ("Prism's databases run PostgreSQL 17.2.", "c14 c15"),
    ("The projects' budgets are 330 000 EUR.", "c16 c17"),
    ("Anna is on parental leave until 15 March 2027.", "c18 c19"),
    ("Invoice 118 to Hotel Savoy is disputed: five lamps arrived broken.", "c20 c21"),
    ("Book a forklift for Harbor by 10 December 2026.", "c25 c26"),
    ("Transfers above 10 000 EUR need no approval.", "c24 c28"),
    ("Mira's sister Elin has her birthday on 19 May.", "a12 a13"),
    ("Mira and Jonas prefer short answers.", "a1 b1"),
    ("Mira can't eat nuts.", "a8 a9"),
    ("Customer support answers on weekdays from 9:00 to 17:00.", "c10 c11"),
]


def to_ids(short_ids: str) -> list[str]:
    return [f"{short_id[0]}{short_id[1:]:0>11}" for short_id in short_ids.split()]


def checked_merge(content: str, short_ids: str) -> CheckedPlan:
    ids = to_ids(short_ids)
    scope = Scope(SCOPE.tenant, SCOPE.agent_id, MEMORIES[ids[0]].user_id)
    return check(plan(replacement(content, *ids)), Snapshot(scope, MEMORIES, len(MEMORIES)))


@pytest.mark.parametrize(("content", "ids"), SENSIBLE)
def test_a_sensible_merge_is_accepted(content: str, ids: str) -> None:
    checked = checked_merge(content, ids)
    assert (len(checked.merges), checked.rejections) == (1, ())


@pytest.mark.parametrize(("content", "ids"), TEMPTING)
def test_a_tempting_mistake_is_not_applied_without_a_judge(content: str, ids: str) -> None:
    for merge in checked_merge(content, ids).merges:
        sources = [MEMORIES[id_] for id_ in merge.source_ids]
        assert decide_by_signs(merged_statement(merge, sources), SignFinder()).fate is Fate.HELD
