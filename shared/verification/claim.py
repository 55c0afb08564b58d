"""What a judge is asked: whether evidence says a statement, or that an earlier one no longer holds."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What a judge says of a claim."""

    SUPPORTED = "supported"  # the evidence says it
    CONTRADICTED = "contradicted"  # the evidence says otherwise
    NOT_SAID = "not_said"  # the evidence leaves it open


@dataclass(frozen=True, slots=True)
class Evidence:
    """A text that somebody wrote, with the day in ISO form, or '' for an unknown one."""

    speaker: str
    date: str
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement and its evidence.

    With `closes`, which is an earlier statement, the claim is that the evidence ends it; `statement` is then
    what is to take its place. `quotable` are the texts in which a quote must stand: the rest of the evidence
    only explains them. None: any of it.
    """

    statement: str
    evidence: tuple[Evidence, ...]
    closes: str | None = None
    quotable: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with the words of the evidence that it rests on, '' where there are none."""

    verdict: Verdict
    quote: str
