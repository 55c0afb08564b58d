"""Ask a model whether evidence says a statement. Its verdict counts only with a quote that the evidence has.

A model that is asked nothing else can hardly be led to store something: its answer is one of three words for
each claim, and the words that it rests on are looked up.
"""

import hashlib
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from shared.foundation import errors, model_output, prompt_safety
from shared.foundation.reply_schema import INTEGER, TEXT, JsonSchema, array_of, object_of, one_of
from shared.verification.claim import Claim, Judgement, Verdict

MAX_CLAIMS = 20
"""Claims of one call."""
REPLY = object_of(verdicts=array_of(object_of(claim=INTEGER, quote=TEXT, verdict=one_of(*Verdict))))
Complete = Callable[[str, str, JsonSchema], Awaitable[str]]
"""Return a model's reply to a system message and a user message, in the shape of the schema."""
_BLANKS = re.compile(r"\s+")


@cache
def directive() -> str:
    """Return the judge's directive. No tenant can set another one: its trust is measured with this text."""
    return files("shared.verification").joinpath("judge.md").read_text(encoding="utf-8")


def directive_version() -> str:
    """Return the beginning of the directive's SHA-256 in hex: trust holds for one text of it."""
    return hashlib.sha256(directive().encode()).hexdigest()[:12]


async def ask(complete: Complete, claims: Sequence[Claim]) -> list[Judgement | None]:
    """Return what a model says of each claim, of which it is asked at most `MAX_CLAIMS` at once.

    None stands for a claim without one clear verdict. `supported` without a quote that stands in the claim's
    evidence is `not_said`. Raises errors.InvalidModelReply for a reply that is no list of verdicts, and what
    `complete` raises.
    """
    judgements: list[Judgement | None] = []
    for start in range(0, len(claims), MAX_CLAIMS):
        batch = claims[start : start + MAX_CLAIMS]
        reply = await complete(directive(), prompt(batch), REPLY)
        judgements += parse_reply(reply, batch)
    return judgements


def prompt(claims: Sequence[Claim]) -> str:
    """Return the user message that asks about claims, numbered from 1."""
    return "\n\n".join(_describe(number, claim) for number, claim in enumerate(claims, start=1))


def _describe(number: int, claim: Claim) -> str:
    turns = [
        prompt_safety.single_line(f"{item.date or 'unknown day'}, {item.speaker}: {item.text}")
        for item in claim.evidence
    ]
    statement = prompt_safety.single_line(claim.statement)
    if claim.closes is None:
        question = [f"Statement: {statement}"]
    else:
        question = [f"No longer holds: {prompt_safety.single_line(claim.closes)}", f"New: {statement}"]
    return "\n".join([prompt_safety.fence(f"Claim {number}. Evidence:", turns), *question])


def parse_reply(reply: str, claims: Sequence[Claim]) -> list[Judgement | None]:
    """Return the judgement of each claim in a reply. Raises errors.InvalidModelReply as `ask` does."""
    by_number: dict[int, list[dict[str, Any]]] = {}
    for item in model_output.parse_listed_objects(reply, "verdicts"):
        number = item.get("claim")
        if not isinstance(number, int) or isinstance(number, bool):
            raise errors.InvalidModelReply("a verdict names no claim")
        by_number.setdefault(number, []).append(item)
    return [_judgement(claim, by_number.get(number, [])) for number, claim in enumerate(claims, start=1)]


def _judgement(claim: Claim, answers: Sequence[dict[str, Any]]) -> Judgement | None:
    if len({answer.get("verdict") for answer in answers}) != 1 or answers[0]["verdict"] not in {*Verdict}:
        return None
    verdict = Verdict(answers[0]["verdict"])
    quotes = [quote for answer in answers if isinstance(quote := answer.get("quote"), str)]
    standing = next((quote for quote in quotes if _stands(quote, claim)), "")
    if verdict is Verdict.SUPPORTED and not standing:
        return Judgement(Verdict.NOT_SAID, "")
    return Judgement(verdict, standing)


def _stands(quote: str, claim: Claim) -> bool:
    """Tell whether a quote stands in one text of the evidence, whatever the case, white space and width."""
    words = _normalised(quote)
    return any(character.isalnum() for character in words) and any(
        words in _normalised(item.text) for item in claim.evidence
    )


def _normalised(text: str) -> str:
    return _BLANKS.sub(" ", unicodedata.normalize("NFKC", text)).strip().casefold()
