"""Decide about statements: a trusted judge about each, or the signs while there is none.

| | no trusted judge, or none that answers | trusted judge |
|---|---|---|
| no sign, closes nothing | stored | supported → stored, otherwise refused |
| … closes the same words but for a value | closed | supported → closed, otherwise not |
| … closes something else | contested; on a matter of safety the closing is held | the same |
| any sign | held | as above: the judge is asked, whatever the signs are |

A statement is decided alone, and what it closes apart. No sign refuses anything, and no judge holds anything.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from shared.foundation import errors
from shared.language import named_days, negation, person
from shared.platform.spend.charge import Payer
from shared.verification.claim import Claim, Evidence, Judgement, Verdict
from shared.verification.signs import Sign, SignFinder

_MIN_SAME_WORDS = 3


class Judge(Protocol):
    """What gives verdicts on claims: `trusted_judge.TrustedJudge`."""

    @property
    def model(self) -> str:
        """The name of the model."""

    async def ask(self, payer: Payer, claims: Sequence[Claim]) -> list[Judgement | None]:
        """Return the judgement of each claim; None for one without a clear verdict."""


class Fate(StrEnum):
    """What becomes of a statement."""

    STORED = "stored"
    HELD = "held"
    REFUSED = "refused"


class ClosingFate(StrEnum):
    """What becomes of the earlier statement that a stored one would end."""

    CLOSED = "closed"
    CONTESTED = "contested"
    HELD = "held"  # contested, and the closing waits for a judge or a caller
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier statement that a new one would end.

    `is_safety_matter` says that a mistake about it could cost health, money or an account.
    """

    text: str
    is_safety_matter: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """What a model proposes to store: a text, its evidence, and the earlier statement that it would end.

    `shown` is what a judge reads instead of the evidence alone, to understand it: the evidence among the
    turns before it, in their order. `context` are earlier texts of the same writer, or labels. A retelling
    says anew what was written to be kept: a note or memories. `found_signs` has the caller found.
    """

    text: str
    evidence: Sequence[Evidence]
    shown: Sequence[Evidence] = ()
    context: Sequence[str] = ()
    closes: Earlier | None = None
    is_retelling: bool = False
    found_signs: frozenset[Sign] = frozenset()

    def claims(self) -> list[Claim]:
        """Return what a judge is asked: whether it is so, and whether what it closes has ended."""
        shown, quotable = tuple(self.shown or self.evidence), tuple(item.text for item in self.evidence)
        claims = [Claim(self.text, shown, quotable=quotable)]
        if self.closes is not None:
            claims.append(Claim(self.text, shown, self.closes.text, quotable))
        return claims


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a statement and of what it closes, and by whom: `judge_model` is None for the signs."""

    fate: Fate
    closing: ClosingFate | None = None
    signs: tuple[Sign, ...] = ()
    judgement: Judgement | None = None
    judge_model: str | None = None

    @property
    def decided_by(self) -> str:
        """Who has decided: `judge` or `signs`."""
        return "signs" if self.judge_model is None else "judge"

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of the memory that say so."""
        verdict = None if self.judgement is None else self.judgement.verdict.value
        return {"decided_by": self.decided_by, "verdict": verdict, "judge_model": self.judge_model}


async def decide(judge: Judge | None, payer: Payer, statements: Sequence[Statement]) -> list[Decision]:
    """Decide about statements, in their order.

    What the judge gives no clear verdict on, because it is away, over its budget or unclear, is decided by
    the signs.
    """
    claims = [statement.claims() for statement in statements]
    judged = iter(await _ask(judge, payer, [claim for of_statement in claims for claim in of_statement]))
    decisions: list[Decision | None] = []
    for of_statement in claims:
        judgement, *closings = [next(judged) for _ in of_statement]
        decisions.append(_by_verdicts(judge.model, judgement, closings) if judge and judgement else None)
    # Long texts take seconds to read: other work of the process goes on meanwhile.
    return await asyncio.to_thread(_complete, statements, decisions)


def _complete(statements: Sequence[Statement], decisions: Sequence[Decision | None]) -> list[Decision]:
    finder = SignFinder()
    pairs = zip(statements, decisions, strict=True)
    return [decision or decide_by_signs(statement, finder) for statement, decision in pairs]


async def _ask(judge: Judge | None, payer: Payer, claims: Sequence[Claim]) -> list[Judgement | None]:
    if judge is None or not claims:
        return [None] * len(claims)
    try:
        return await judge.ask(payer, claims)
    except (errors.OverBudget, errors.Unavailable):
        return [None] * len(claims)


def _by_verdicts(model: str, judgement: Judgement, closings: Sequence[Judgement | None]) -> Decision:
    if judgement.verdict is not Verdict.SUPPORTED:
        return Decision(Fate.REFUSED, judgement=judgement, judge_model=model)
    fate = next(map(_closing_by_verdict, closings), None)
    return Decision(Fate.STORED, fate, judgement=judgement, judge_model=model)


def _closing_by_verdict(judgement: Judgement | None) -> ClosingFate:
    """Return what becomes of a closing; without a clear verdict both stand."""
    if judgement is None:
        return ClosingFate.CONTESTED
    return ClosingFate.CLOSED if judgement.verdict is Verdict.SUPPORTED else ClosingFate.REFUSED


def decide_by_signs(statement: Statement, finder: SignFinder) -> Decision:
    """Decide about a statement without a judge."""
    find_signs = finder.of_retelling if statement.is_retelling else finder.of_statement
    found = find_signs(statement.text, statement.evidence, statement.context)
    ordered = tuple(sign for sign in Sign if sign in found | statement.found_signs)
    if ordered:
        return Decision(Fate.HELD, signs=ordered)
    closing = _closing_by_signs(statement)
    is_held = closing is ClosingFate.HELD
    return Decision(Fate.STORED, closing, (Sign.CLOSES_SAFETY_MATTER,) if is_held else ())


def _closing_by_signs(statement: Statement) -> ClosingFate | None:
    earlier = statement.closes
    if earlier is None:
        return None
    if earlier.is_safety_matter:
        return ClosingFate.HELD
    return ClosingFate.CLOSED if _changes_value(statement.text, earlier.text) else ClosingFate.CONTESTED


def _changes_value(text: str, earlier: str) -> bool:
    """Tell whether two statements have the same words but for a value: numbers, days, or the last word.

    Any other word may be the subject: that Paul lives in Berlin does not end that Anna does.
    """
    if negation.denies(text) is not negation.denies(earlier):
        return False
    new, old = (
        [word for word in person.words_of(item) if word not in named_days.ALL_NAMES]
        for item in (text, earlier)
    )
    return new[:-1] == old[:-1] and len(new) > _MIN_SAME_WORDS
