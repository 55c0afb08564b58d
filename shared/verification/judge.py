"""Ask a model whether evidence says a statement. Its verdict counts only with a quote that the evidence has.

A model that is asked nothing else can hardly be led to store something: its answer is one of three words for
each claim, and the words that it rests on are looked up. A quote proves little by itself; how often such
verdicts are right is measured (`trust.py`).
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from shared.foundation import errors, model_output, prompt_safety
from shared.foundation.reply_schema import INTEGER, TEXT, JsonSchema, array_of, object_of, one_of
from shared.verification import quotes
from shared.verification.claim import Claim, Evidence, Judgement, Verdict

MAX_CLAIMS = 20
"""Claims of one call."""
REPLY = object_of(verdicts=array_of(object_of(claim=INTEGER, quote=TEXT, verdict=one_of(*Verdict))))
Complete = Callable[[str, str, JsonSchema], Awaitable[str]]
"""Return a model's reply to a system message and a user message, in the shape of the schema."""
_DIGITS = re.compile(r"[0-9]{1,4}")
_LIST = re.compile(r'(?<!\\)"verdicts"\s*:')
_NO_MARKS = str.maketrans({":": " ", "[": "(", "]": ")"})


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
    evidence is `not_said`. What is cut off is asked again in halves. Raises what `complete` raises, but for
    errors.InvalidModelReply, which leaves its claims without a verdict.
    """
    judgements: list[Judgement | None] = []
    for start in range(0, len(claims), MAX_CLAIMS):
        judgements += await _ask_at_once(complete, claims[start : start + MAX_CLAIMS])
    return judgements


async def _ask_at_once(complete: Complete, claims: Sequence[Claim]) -> list[Judgement | None]:
    try:
        return await ask_once(complete, claims)
    except errors.CutOffReply:
        middle = len(claims) // 2
        if middle == 0:
            return [None]
        halves = (claims[:middle], claims[middle:])
        return [judgement for half in halves for judgement in await _ask_at_once(complete, half)]


async def ask_once(complete: Complete, claims: Sequence[Claim]) -> list[Judgement | None]:
    """Return what a model says of at most `MAX_CLAIMS` claims, as `ask` does, but with a single call.

    Raises errors.CutOffReply if the reply ends before it is complete.
    """
    try:
        return parse_reply(await complete(directive(), prompt(claims), REPLY), claims)
    except errors.CutOffReply:
        raise
    except errors.InvalidModelReply:
        return [None] * len(claims)


def prompt(claims: Sequence[Claim]) -> str:
    """Return the user message that asks about claims, numbered from 1."""
    return "\n\n".join(_describe(number, claim) for number, claim in enumerate(claims, start=1))


def _describe(number: int, claim: Claim) -> str:
    statement = prompt_safety.single_line(claim.statement)
    if claim.closes is None:
        question = [f"Statement: {statement}"]
    else:
        question = [f"No longer holds: {prompt_safety.single_line(claim.closes)}", f"New: {statement}"]
    turns = [_turn(item) for item in claim.evidence]
    return "\n".join([prompt_safety.fence(f"Claim {number}. Evidence:", turns), *question])


def _turn(item: Evidence) -> str:
    """Return a turn as one line. Neither its text nor its speaker can look like the beginning of another."""
    speaker = prompt_safety.single_line(item.speaker).translate(_NO_MARKS)
    return f"[{item.date or 'unknown day'}] {speaker}: {prompt_safety.single_line(item.text)}"


def parse_reply(reply: str, claims: Sequence[Claim]) -> list[Judgement | None]:
    """Return the judgement of each claim in a reply.

    Raises errors.CutOffReply, and errors.InvalidModelReply for a reply that is not one list of verdicts on
    these claims: of a second list nobody knows which one the model means, and one may be quoted evidence.
    """
    if len(_LIST.findall(reply.rpartition("</think>")[2])) > 1:
        raise errors.InvalidModelReply("the reply has more than one list of verdicts")
    by_number: dict[int, list[dict[str, Any]]] = {}
    for item in model_output.parse_listed_objects(reply, "verdicts"):
        number = _number_of(item.get("claim"))
        if not 1 <= number <= len(claims):
            raise errors.InvalidModelReply("a verdict names no claim that was asked")
        by_number.setdefault(number, []).append(item)
    return [_judgement(claim, by_number.get(number, [])) for number, claim in enumerate(claims, start=1)]


def _number_of(named: Any) -> int:
    """Return the number of a claim, also one in quotation marks; 0 for anything else."""
    if isinstance(named, int) and not isinstance(named, bool):
        return named
    return int(named) if isinstance(named, str) and _DIGITS.fullmatch(named) else 0


def _judgement(claim: Claim, answers: Sequence[dict[str, Any]]) -> Judgement | None:
    named = [answer.get("verdict") for answer in answers]
    if not named or named.count(named[0]) != len(named) or named[0] not in [*Verdict]:
        return None
    verdict = Verdict(str(named[0]))
    given = [quote for answer in answers if isinstance(quote := answer.get("quote"), str)]
    standing = next((quote for quote in given if _stands(quote, claim)), "")
    if verdict is Verdict.SUPPORTED and not standing:
        return Judgement(Verdict.NOT_SAID, "")
    return Judgement(verdict, standing)


def _stands(quote: str, claim: Claim) -> bool:
    texts = [item.text for item in claim.evidence] if claim.quotable is None else claim.quotable
    return any(quotes.stands_in(quote, quotes.normalised(text)) for text in texts)
