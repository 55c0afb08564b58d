"""Tables of what was measured, and whether each goal is reached."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks import table
from benchmarks.truth import facts, merges, rewritings
from benchmarks.truth.data import Half, half_of
from benchmarks.truth.oracle import JudgeUse
from benchmarks.truth.outcome import Ending, Fate, Outcome

ENGLISH, OTHERS = "en", "all others"
_HEAD = ("", "items", "stored", "held", "refused")
_HALVES = (Half.HOME, Half.ABROAD)


@dataclass(frozen=True, slots=True)
class Measured:
    """All outcomes, and what the judge was asked about the facts; None where nobody counted."""

    outcomes: Sequence[Outcome]
    facts_judge_use: JudgeUse | None

    def of(self, part: str) -> list[Outcome]:
        """Return the outcomes of a part."""
        return [outcome for outcome in self.outcomes if outcome.part == part]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is aimed at, the measured value, and whether it is reached; None if it was not measured."""

    name: str
    value: str
    is_reached: bool | None


def show(measured: Measured) -> None:
    """Print the tables of all parts, each by half, and by language."""
    for part in (facts.PART, rewritings.PART, merges.PART):
        outcomes = measured.of(part)
        if outcomes:
            print(f"{part}\n")
            table.show(_HEAD, [row for half in _halves_of(outcomes) for row in _half_rows(outcomes, half)])
            table.show(_HEAD, _language_rows(outcomes))
    _show_closings(measured.of(facts.PART))
    _show_codes(measured.outcomes)


def _halves_of(outcomes: Sequence[Outcome]) -> list[Half]:
    halves = {half_of(outcome.id) for outcome in outcomes}
    return [*(half for half in _HALVES if half in halves), *([Half.BOTH] if len(halves) > 1 else [])]


def in_half(outcomes: Iterable[Outcome], half: Half) -> list[Outcome]:
    """Return the outcomes of a half."""
    return [outcome for outcome in outcomes if half in (Half.BOTH, half_of(outcome.id))]


def _half_rows(outcomes: Sequence[Outcome], half: Half) -> list[list[str]]:
    chosen = in_half(outcomes, half)
    return [
        _row(f"{half.value}: good", [outcome for outcome in chosen if outcome.is_good]),
        _row(f"{half.value}: bad", [outcome for outcome in chosen if not outcome.is_good]),
    ]


def _language_rows(outcomes: Sequence[Outcome]) -> list[list[str]]:
    groups = dict.fromkeys(outcome.lang for outcome in outcomes)
    rows: list[list[str]] = []
    for is_good in (True, False):
        chosen = [outcome for outcome in outcomes if outcome.is_good is is_good]
        name = "good" if is_good else "bad"
        rows += [_row(f"{name}, {lang}", [o for o in chosen if o.lang == lang]) for lang in groups]
        rows.append(_row(f"{name}, {OTHERS}", [o for o in chosen if o.lang != ENGLISH]))
    return rows


def _row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter(outcome.fate for outcome in outcomes)
    return [name, str(len(outcomes)), *(str(counts[fate]) for fate in Fate)]


def _show_closings(outcomes: Sequence[Outcome]) -> None:
    closing = [outcome for outcome in outcomes if outcome.ending is not Ending.NONE]
    if not closing:
        return
    endings = [ending for ending in Ending if ending is not Ending.NONE]
    rows = []
    for half in _halves_of(closing):
        for is_good, name in ((True, "right"), (False, "wrong")):
            chosen = [outcome for outcome in in_half(closing, half) if outcome.is_good is is_good]
            counts = Counter(outcome.ending for outcome in chosen)
            rows.append([f"{half.value}: {name}", str(len(chosen)), *(str(counts[item]) for item in endings)])
    print("closings of earlier facts\n")
    table.show(("", "items", *(ending.value for ending in endings)), rows)


def _show_codes(outcomes: Iterable[Outcome]) -> None:
    """Print the reasons of what was not stored, and of closings that were refused alone."""
    counts = Counter((outcome.part, code, outcome.is_good) for outcome in outcomes for code in outcome.codes)
    names = dict.fromkeys((part, code) for part, code, _ in sorted(counts))
    rows = [
        [f"{part}: {code}", str(counts[part, code, True]), str(counts[part, code, False])]
        for part, code in names
    ]
    if rows:
        table.show(("reason of a refusal", "good", "bad"), rows)


def show_goals(goals: Sequence[Goal]) -> None:
    """Print a line for each goal."""
    words = {True: "reached", False: "not reached", None: "not measured"}
    table.show(("goal", "measured", ""), [[goal.name, goal.value, words[goal.is_reached]] for goal in goals])


def goals_of(measured: Measured, *, is_judged: bool) -> list[Goal]:
    """Return the goals. With a judge that is to be trusted they are higher than without one."""
    least_good, most_bad = (0.96, 0.04) if is_judged else (0.5, 0.1)
    outcomes = measured.of(facts.PART)
    good, bad = _stored_share(outcomes, is_good=True), _stored_share(outcomes, is_good=False)
    goals = [
        _at_least("good facts stored", good, least_good),
        _at_most("bad facts stored", bad, most_bad),
        _wrong_closings(outcomes, is_judged=is_judged),
        _even_languages(outcomes),
        *_judge_goals(measured.facts_judge_use, outcomes),
        _found(measured.of(rewritings.PART)),
    ]
    if not is_judged:
        goals.insert(1, _none_lost(outcomes))
    return goals


def _stored_share(outcomes: Iterable[Outcome], *, is_good: bool) -> float | None:
    chosen = [outcome.fate is Fate.STORED for outcome in outcomes if outcome.is_good is is_good]
    return sum(chosen) / len(chosen) if chosen else None


def _at_least(name: str, share: float | None, least: float) -> Goal:
    return Goal(f"{name}: at least {least:.0%}", _percent(share), None if share is None else share >= least)


def _at_most(name: str, share: float | None, most: float) -> Goal:
    return Goal(f"{name}: at most {most:.0%}", _percent(share), None if share is None else share <= most)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"


def _none_lost(outcomes: Sequence[Outcome]) -> Goal:
    lost = sum(outcome.is_good and outcome.fate is Fate.REFUSED for outcome in outcomes)
    return Goal("good facts neither stored nor held: none", str(lost), lost == 0 if outcomes else None)


def _wrong_closings(outcomes: Sequence[Outcome], *, is_judged: bool) -> Goal:
    count = sum(not outcome.is_good and outcome.ending is Ending.CLOSED for outcome in outcomes)
    is_reached = None if is_judged or not outcomes else count == 0
    return Goal("wrong closings without a judge: none", str(count), is_reached)


def _even_languages(outcomes: Sequence[Outcome]) -> Goal:
    distances: list[float] = []
    for is_good in (True, False):
        english = _stored_share((o for o in outcomes if o.lang == ENGLISH), is_good=is_good)
        others = _stored_share((o for o in outcomes if o.lang != ENGLISH), is_good=is_good)
        if english is not None and others is not None:
            distances.append(100 * abs(english - others))
    name = "English and all others, stored: within 7 points"
    if not distances:
        return Goal(name, "-", None)
    return Goal(name, " and ".join(f"{distance:.1f}" for distance in distances), max(distances) <= 7)


def _judge_goals(use: JudgeUse | None, outcomes: Sequence[Outcome]) -> list[Goal]:
    names = ("calls of the judge per stored fact: at most 0.2", "its tokens per stored fact: at most 400")
    stored = sum(outcome.fate is Fate.STORED for outcome in outcomes)
    if use is None or not stored:
        return [Goal(name, "-", None) for name in names]
    calls, tokens = use.calls / stored, use.tokens / stored
    is_asked = use.calls > 0
    return [
        Goal(names[0], f"{calls:.2f}", calls <= 0.2 if is_asked else None),
        Goal(names[1], f"{tokens:.0f}", tokens <= 400 if is_asked else None),
    ]


def _found(outcomes: Iterable[Outcome]) -> Goal:
    found = [outcome.is_found for outcome in outcomes if outcome.is_found is not None]
    share = sum(found) / len(found) if found else None
    return _at_least("what a right rewriting left out is found", share, 0.95)
