"""TR2, TR4: the table of who decides what: a trusted judge about each statement, or the signs without one."""

import time
from collections.abc import Sequence

import pytest

from shared.dreams.passes.fact_statements import statement_of
from shared.dreams.verification.fact_check import check
from shared.foundation import errors
from shared.platform.spend.charge import Payer, Purpose
from shared.verification import decision
from shared.verification.claim import Claim, Judgement, Verdict
from shared.verification.decision import ClosingFate, Decision, Earlier, Fate, Statement
from shared.verification.signs import Sign
from tests.unit.mining.conversations import conversation, fact
from tests.unit.verification.said import said

PAYER = Payer("acme", "helper", "mira", Purpose.JUDGE)
SUPPORTED, CONTRADICTED, NOT_SAID = Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.NOT_SAID
PLAIN = Statement("The user lives in Odense.", said("I live in Odense."))
DOUBTED = Statement("The user lives in Odense.", said("I'm visiting Odense."))


class StandInJudge:
    """Gives the verdicts that a test chooses, in the order of the claims; None is no clear one."""

    model = "judge-1"

    def __init__(self, *verdicts: Verdict | None, fails_with: Exception | None = None) -> None:
        self.verdicts = verdicts
        self.fails_with = fails_with
        self.asked: list[Claim] = []

    async def ask(self, payer: Payer, claims: Sequence[Claim]) -> list[Judgement | None]:
        assert payer == PAYER
        self.asked += claims
        if self.fails_with is not None:
            raise self.fails_with
        return [Judgement(item, "words") if item else None for item in self.verdicts[: len(claims)]]


def closing(
    earlier: str, *, is_safety_matter: bool = False, said_text: str = "I live in Odense."
) -> Statement:
    """Return a statement without a sign that would end an earlier one."""
    text = (
        said_text.replace("I live", "The user lives")
        .replace("I take", "The user takes")
        .replace("I own", "The user owns")
    )
    return Statement(text, said(said_text), closes=Earlier(earlier, is_safety_matter))


async def decide(judge: StandInJudge | None, *statements: Statement) -> list[Decision]:
    return await decision.decide(judge, PAYER, statements)


async def test_without_a_judge_what_has_no_sign_is_stored_and_what_has_one_is_held() -> None:
    stored, held = await decide(None, PLAIN, DOUBTED)
    assert stored == Decision(Fate.STORED)
    assert held == Decision(Fate.HELD, signs=(Sign.OTHER_WORDS,))
    assert stored.columns == {"decided_by": "signs", "verdict": None, "judge_model": None}


async def test_signs_are_named_in_one_order_with_those_that_the_caller_has_found() -> None:
    found = Statement(PLAIN.text, PLAIN.evidence, found_signs=frozenset({Sign.LOST}))
    doubted = Statement(DOUBTED.text, DOUBTED.evidence, found_signs=frozenset({Sign.LOST, Sign.PAST}))
    first, second = await decide(None, found, doubted)
    assert (first.fate, first.signs) == (Fate.HELD, (Sign.LOST,))
    assert second.signs == (Sign.LOST, Sign.OTHER_WORDS, Sign.PAST)


def _of_paul(earlier: str) -> Statement:
    """Return a statement about another person than the earlier one is about."""
    return Statement("Paul lives in Berlin.", said("Paul lives in Berlin."), closes=Earlier(earlier, False))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (closing("The user owns a flat in Aarhus.", said_text="I own a flat in Odense."), ClosingFate.CLOSED),
        (
            closing("The user takes 5 mg of Ramipril.", said_text="I take 10 mg of Ramipril."),
            ClosingFate.CLOSED,
        ),
        (closing("The user works at the harbour."), ClosingFate.CONTESTED),
        (closing("The user doesn't live in Odense."), ClosingFate.CONTESTED),
        (closing("The user lives in Aarhus with Mette and a dog."), ClosingFate.CONTESTED),
        (closing("The user lives in Aarhus.", is_safety_matter=True), ClosingFate.HELD),
        (closing("The user works at the harbour.", is_safety_matter=True), ClosingFate.HELD),
        (_of_paul("Anna lives in Berlin."), ClosingFate.CONTESTED),
    ],
)
async def test_without_a_judge_only_a_changed_value_closes(
    statement: Statement, expected: ClosingFate
) -> None:
    [decided] = await decide(None, statement)
    assert (decided.fate, decided.closing) == (Fate.STORED, expected)
    signs = (Sign.CLOSES_SAFETY_MATTER,) if expected is ClosingFate.HELD else ()
    assert decided.signs == signs


async def test_without_a_judge_a_held_statement_closes_nothing() -> None:
    doubted = Statement(DOUBTED.text, DOUBTED.evidence, closes=Earlier("The user lives in Aarhus.", False))
    [decided] = await decide(None, doubted)
    assert (decided.fate, decided.closing) == (Fate.HELD, None)


@pytest.mark.parametrize("statement", [PLAIN, DOUBTED])
@pytest.mark.parametrize(
    ("verdict", "fate"),
    [(SUPPORTED, Fate.STORED), (CONTRADICTED, Fate.REFUSED), (NOT_SAID, Fate.REFUSED)],
)
async def test_a_judge_decides_whatever_the_signs_are(
    statement: Statement, verdict: Verdict, fate: Fate
) -> None:
    [decided] = await decide(StandInJudge(verdict), statement)
    assert decided == Decision(fate, judgement=Judgement(verdict, "words"), judge_model="judge-1")
    assert decided.columns == {"decided_by": "judge", "verdict": verdict.value, "judge_model": "judge-1"}


@pytest.mark.parametrize("is_safety_matter", [False, True])
@pytest.mark.parametrize(
    ("verdicts", "fate", "expected"),
    [
        ((SUPPORTED, SUPPORTED), Fate.STORED, ClosingFate.CLOSED),
        ((SUPPORTED, NOT_SAID), Fate.STORED, ClosingFate.REFUSED),
        ((SUPPORTED, CONTRADICTED), Fate.STORED, ClosingFate.REFUSED),
        ((NOT_SAID, SUPPORTED), Fate.REFUSED, None),
    ],
)
async def test_a_judge_decides_about_the_closing_apart(
    verdicts: tuple[Verdict, Verdict], fate: Fate, expected: ClosingFate | None, *, is_safety_matter: bool
) -> None:
    statement = closing("The user works at the harbour.", is_safety_matter=is_safety_matter)
    judge = StandInJudge(*verdicts)
    [decided] = await decide(judge, statement)
    assert (decided.fate, decided.closing) == (fate, expected)
    assert [claim.closes for claim in judge.asked] == [None, "The user works at the harbour."]


async def test_each_statement_gets_its_own_verdicts() -> None:
    judge = StandInJudge(SUPPORTED, NOT_SAID, NOT_SAID, SUPPORTED)
    decided = await decide(judge, closing("The user lives in Aarhus."), PLAIN, DOUBTED)
    assert [(item.fate, item.closing) for item in decided] == [
        (Fate.STORED, ClosingFate.REFUSED),
        (Fate.REFUSED, None),
        (Fate.STORED, None),
    ]


@pytest.mark.parametrize("verdicts", [(None, SUPPORTED), (None, None)])
async def test_a_statement_without_a_verdict_is_decided_by_signs_and_others_by_the_judge(
    verdicts: tuple[Verdict | None, ...],
) -> None:
    judge = StandInJudge(*verdicts, NOT_SAID)
    unclear, refused = await decide(judge, closing("The user works at the harbour."), PLAIN)
    assert unclear == Decision(Fate.STORED, ClosingFate.CONTESTED)
    assert refused.fate is Fate.REFUSED


async def test_a_verdict_counts_without_one_on_the_closing_which_then_leaves_both() -> None:
    earlier = closing("The user lives in Aarhus.")
    [refused] = await decide(StandInJudge(NOT_SAID, None), earlier)
    assert (refused.fate, refused.closing, refused.decided_by) == (Fate.REFUSED, None, "judge")
    [stored] = await decide(StandInJudge(SUPPORTED, None), earlier)
    assert (stored.fate, stored.closing, stored.decided_by) == (Fate.STORED, ClosingFate.CONTESTED, "judge")


@pytest.mark.parametrize("error", [errors.OverBudget("spent", 60), errors.Unavailable("judge", "away")])
async def test_a_judge_that_can_not_be_asked_leaves_the_signs(error: Exception) -> None:
    decided = await decide(StandInJudge(fails_with=error), PLAIN, DOUBTED)
    assert [(item.fate, item.decided_by) for item in decided] == [
        (Fate.STORED, "signs"),
        (Fate.HELD, "signs"),
    ]


async def test_a_judge_reads_what_is_shown_and_the_signs_the_evidence() -> None:
    shown = said("Where do you live?", "I live in Odense.")
    judge = StandInJudge(SUPPORTED)
    await decide(judge, Statement(PLAIN.text, PLAIN.evidence, shown))
    quotable = tuple(item.text for item in PLAIN.evidence)
    assert judge.asked == [Claim(PLAIN.text, tuple(shown), quotable=quotable)]


async def test_nothing_is_asked_about_nothing() -> None:
    judge = StandInJudge()
    assert await decide(judge) == []
    assert judge.asked == []


MAX_CPU_SECONDS = 25


@pytest.mark.parametrize(
    "unit", ["Ada has 3 cats in Rome, and Ben a boat. ", "Ada has 3 cats, ", "x", "我住在北京"]
)
async def test_a_hundred_statements_of_a_very_long_turn_take_seconds(unit: str) -> None:
    """A user may paste a document, and an answer may have a hundred facts of it."""
    talk = conversation(f"u: {(unit * 250_000)[:250_000]}")
    facts = [fact(f"The user has {number} cats in Rome, and Ben a boat.", 1) for number in range(100)]
    started = time.process_time()
    checked = check(facts, talk).facts
    decided = await decide(None, *(statement_of(item, talk) for item in checked))
    assert len(decided) == 100
    assert time.process_time() - started < MAX_CPU_SECONDS
