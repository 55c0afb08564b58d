"""A model that behaves differently for each note, so that one run tests many faults at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.standins.wire import Behaviour, Call, Wire


@dataclass(frozen=True)
class ByWord:
    """Play the behaviour of the first word that occurs in the request, else `otherwise`."""

    plans: Mapping[str, Behaviour]
    otherwise: Behaviour

    def play(self, call: Call, wire: Wire) -> None:
        plan = next((self.plans[word] for word in self.plans if word in _request_text(call)), self.otherwise)
        plan.play(call, wire)


def _request_text(call: Call) -> str:
    return call.raw.decode()
