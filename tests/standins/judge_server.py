"""A stand-in for a judge: it reads the claims that it is asked, and answers in a way that a test chooses.

    with JudgeServer() as server:                    # answers the labelled pairs by their labels
        server.labels["Ada lives in Graz."] = Verdict.SUPPORTED      # and further statements by these
        server.verdict_of = yes_to_all               # or any function of a claim
        server.model = "another"                     # the name that its replies report
        server.chat_default = garbage()              # or what any endpoint does wrong: Status(503), Drop() …
        server.asked                                 # the claims of all calls so far

It may serve as the language model, too: requests without the judge's directive get `other_reply`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from shared.foundation import prompt_safety
from shared.verification import calibration, judge
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Verdict
from tests.standins.behaviours import Reply, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire

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
    return bool(call.body["messages"][0]["content"] == judge.directive())


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


def garbage() -> Reply:
    """Return a behaviour: words instead of verdicts."""
    return Reply("I support all of them, they sound right to me.")


def cut_off() -> Truncated:
    """Return a behaviour: verdicts that end before they are complete, however few claims are asked."""
    return Truncated('{"verdicts": [{"claim": 1, "quote": "', keep=30)


class JudgeServer(ModelServer):
    """A model endpoint that judges. What is programmed may be changed at any time."""

    def __init__(self, verdict_of: VerdictOf = by_label, *, model: str | None = None) -> None:
        super().__init__(chat_default=_Judging(self))
        self.verdict_of = verdict_of
        self.labels: dict[str, Verdict] = {}
        """Verdicts by the statement, as the prompt shows it, which go before `verdict_of`."""
        self.model = model
        """The model that replies report; None: the one that was asked for."""
        self.other_reply: Behaviour = Reply()

    @property
    def judge_calls(self) -> list[Call]:
        """The requests for verdicts so far."""
        return [call for call in self.chat_calls if is_for_judge(call)]

    @property
    def asked(self) -> list[AskedClaim]:
        """The claims of all calls so far, in their order."""
        return [claim for call in self.judge_calls for claim in asked_claims(call)]

    def verdict(self, claim: AskedClaim) -> Verdict:
        """Return what this judge says of a claim."""
        return self.labels.get(claim.statement) or self.verdict_of(claim)


@dataclass(frozen=True)
class _Judging:
    """Answer as the server is programmed now."""

    server: JudgeServer

    def play(self, call: Call, wire: Wire) -> None:
        if is_for_judge(call):
            Reply(reply_text(call, self.server.verdict), model=self.server.model).play(call, wire)
        elif isinstance(self.server.other_reply, Reply):
            replace(self.server.other_reply, model=self.server.model).play(call, wire)
        else:
            self.server.other_reply.play(call, wire)
