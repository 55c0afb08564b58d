"""The claims that a judge is asked, as a stand-in reads them, and functions that give verdicts on them."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.foundation import prompt_safety
from shared.verification import calibration, judge
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Verdict
from tests.standins.wire import Call

_CLAIM = re.compile(r"^Claim (\d+)\. Evidence:$", re.MULTILINE)
_TURN = re.compile(r"^\[[^\]]*\] [^:]*: (.*)$", re.MULTILINE)
_STATEMENT = re.compile(r"^(?:Statement|New): (.*)$", re.MULTILINE)
_CLOSES = re.compile(r"^No longer holds: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class AskedClaim:
    """A claim as the prompt shows it: each text on one line, and evidence without its day and speaker."""

    number: int
    statement: str
    closes: str | None
    evidence: tuple[str, ...]

    @property
    def pair(self) -> LabelledClaim | None:
        """The labelled pair that comes with the product, if the claim is one."""
        return _PAIRS.get((self.statement, self.closes))


def _shown(text: str | None) -> str | None:
    return None if text is None else prompt_safety.single_line(text)


_PAIRS = {(_shown(pair.claim.statement), _shown(pair.claim.closes)): pair for pair in calibration.read()}
VerdictOf = Callable[[AskedClaim], Verdict]


def is_for_judge(call: Call) -> bool:
    """Tell whether a chat request is one for verdicts."""
    return asks_for_verdicts(call.body)


def asks_for_verdicts(body: Any) -> bool:
    """Tell whether the body of a chat request has the judge's directive."""
    messages = body.get("messages") if isinstance(body, dict) else None
    return isinstance(messages, list) and bool(messages) and messages[0].get("content") == judge.directive()


def asked_claims(call: Call) -> list[AskedClaim]:
    """Return the claims of a request, in their order."""
    parts = _CLAIM.split(call.body["messages"][1]["content"])[1:]
    return [_parse_claim(int(number), text) for number, text in zip(parts[::2], parts[1::2], strict=True)]


def _parse_claim(number: int, text: str) -> AskedClaim:
    evidence, _, question = text.rpartition(prompt_safety.CLOSE)
    closes = _CLOSES.search(question)
    [statement] = _STATEMENT.findall(question)
    return AskedClaim(number, statement, closes[1] if closes else None, tuple(_TURN.findall(evidence)))


def reply_text(call: Call, verdict_of: VerdictOf) -> str:
    """Return a reply with a verdict on each claim of a request, which quotes the last turn of evidence."""
    verdicts = [
        {"claim": claim.number, "quote": claim.evidence[-1], "verdict": verdict_of(claim)}
        for claim in asked_claims(call)
    ]
    return json.dumps({"verdicts": verdicts})


def by_label(claim: AskedClaim) -> Verdict:
    """Answer as the labels of the product's pairs say; of anything else, that nobody said it."""
    return Verdict.NOT_SAID if claim.pair is None else claim.pair.verdict


def yes_to_all(_: AskedClaim) -> Verdict:
    """Answer yes, whatever is asked."""
    return Verdict.SUPPORTED


def lying_in_a_third(claim: AskedClaim) -> Verdict:
    """Answer by the label, but the opposite for each third claim of a request."""
    label = by_label(claim)
    if claim.number % 3:
        return label
    return Verdict.NOT_SAID if label is Verdict.SUPPORTED else Verdict.SUPPORTED
