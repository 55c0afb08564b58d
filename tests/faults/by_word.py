"""A model that treats each note by its own word, so that one run tries many faults side by side."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.standins.wire import Behaviour, Call, Wire


@dataclass(frozen=True)
class ByWord:
    """Play the behaviour of the first word that the request holds, else `otherwise`."""

    plans: Mapping[str, Behaviour]
    otherwise: Behaviour

    def play(self, call: Call, wire: Wire) -> None:
        plan = next((self.plans[word] for word in self.plans if word in _told(call)), self.otherwise)
        plan.play(call, wire)


def _told(call: Call) -> str:
    return call.raw.decode()
