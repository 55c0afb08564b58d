"""What became of the mutants of a module."""

from dataclasses import dataclass, field

from tests.mutants.copy import Outcome
from tests.mutants.guard import Guard
from tests.mutants.mutant import Mutant

_LEAST_KILLED = 0.90
_MOST_EQUIVALENT = 0.03


@dataclass
class Score:
    """What became of a guard's mutants. `survivors` are the differences that no test noticed.

    `undecided` counts those among them of which a busy machine said nothing. `tests_seconds` is what the
    tests of the unchanged module took, `seconds` the whole module. `fault` says why the rest means nothing.
    """

    guard: Guard
    tests_seconds: float = 0.0
    seconds: float = 0.0
    killed: int = 0
    timed_out: int = 0
    equivalent: int = 0
    undecided: int = 0
    survivors: list[str] = field(default_factory=list)
    fault: str = ""

    def add(self, mutant: Mutant, original: str, outcome: Outcome) -> None:
        """Count what the tests said to a mutant of this source."""
        if outcome is Outcome.KILLED:
            self.killed += 1
        elif outcome is Outcome.TIMED_OUT:
            self.timed_out += 1
        elif mutant.changed_lines(original).strip() in self.guard.equivalent:
            self.equivalent += 1
        else:
            self.undecided += outcome is Outcome.UNDECIDED
            self.survivors.append(f"{outcome.value}: {mutant.change}\n{mutant.difference(original)}")

    @property
    def name(self) -> str:
        """The module, and whether its changes were written by hand."""
        return f"{self.guard.module}{' (by hand)' if self.guard.changes else ''}"

    @property
    def total(self) -> int:
        """The number of mutants that were tried."""
        return self.killed + self.timed_out + self.equivalent + len(self.survivors)

    @property
    def share(self) -> float:
        """The share of killed ones among those that change what the module does."""
        return (self.killed + self.timed_out) / max(1, self.total - self.equivalent)

    @property
    def is_enough(self) -> bool:
        """Whether enough were killed, and few enough are said to be equivalent."""
        is_known = not self.fault and self.total > 0
        return is_known and self.share >= _LEAST_KILLED and self.equivalent <= _MOST_EQUIVALENT * self.total
