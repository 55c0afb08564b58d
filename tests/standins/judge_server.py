"""A stand-in for a judge: it reads the claims that it is asked, and answers in a way that a test chooses.

    with JudgeServer() as server:                    # answers the labelled pairs by their labels
        server.labels["Ada lives in Graz."] = Verdict.SUPPORTED      # and further statements by these
        server.verdict_of = yes_to_all               # or any function of a claim
        server.model = "another"                     # the name that its replies report
        server.chat_default = garbage()              # or what any endpoint does wrong: Status(503), Drop() …
        server.asked                                 # the claims of all calls so far

It may serve as the language model, too: requests without the judge's directive get `other_reply`.
"""

from dataclasses import dataclass, replace

from shared.verification.claim import Verdict
from tests.standins.asked_claims import (
    AskedClaim,
    VerdictOf,
    asked_claims,
    by_label,
    is_for_judge,
    reply_text,
)
from tests.standins.behaviours import Reply, Truncated
from tests.standins.models import ModelServer
from tests.standins.wire import Behaviour, Call, Wire


def garbage() -> Reply:
    """Return a behaviour: words instead of verdicts."""
    return Reply("I support all of them, they sound right to me.")


def cut_off() -> Truncated:
    """Return a behaviour: verdicts that end before they are complete, however few claims are asked."""
    return Truncated('{"verdicts": [{"claim": 1, "quote": "', keep=30)


class JudgeServer(ModelServer):
    """A model endpoint that judges. What is programmed may be changed at any time."""

    agrees_as_judge = False

    def __init__(self, verdict_of: VerdictOf = by_label, *, model: str | None = None) -> None:
        super().__init__(chat_default=_Judging(self))
        self.verdict_of = verdict_of
        self.labels: dict[str, Verdict] = {}
        """Verdicts by the statement, as the prompt shows it, which go before `verdict_of`."""
        self.model = model
        """The model that replies report; None: the one that was asked for."""
        self.other_reply: Behaviour = Reply()

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
