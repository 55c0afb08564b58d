"""Run `python -m tests.mutants`: try the mutants of every guard and print how many tests noticed."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.memory_folder import memory_folder
from tests.mutants import guard as guards
from tests.mutants.copy import LONGEST_TESTS_SECONDS, Outcome, ProjectCopy
from tests.mutants.guard import Guard

_LEAST_KILLED = 0.90
_MOST_EQUIVALENT = 0.03
_LISTS = ("guards.toml", "changes.toml")
_ROOT = Path(__file__).parent.parent.parent


@dataclass
class Score:
    """What became of a guard's mutants. `survivors` are the differences that no test noticed.

    `tests_seconds` is what the tests of the unchanged module took, `seconds` the whole module.
    """

    guard: Guard
    tests_seconds: float
    seconds: float = 0.0
    killed: int = 0
    timed_out: int = 0
    equivalent: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of mutants."""
        return self.killed + self.timed_out + self.equivalent + len(self.survivors)

    @property
    def share(self) -> float:
        """The share of killed ones among those that change what the module does."""
        return (self.killed + self.timed_out) / max(1, self.total - self.equivalent)

    @property
    def is_enough(self) -> bool:
        """Whether enough were killed, and few enough are said to be equivalent."""
        return self.share >= _LEAST_KILLED and self.equivalent <= _MOST_EQUIVALENT * self.total


def _score(guard: Guard, copies: "Queue[ProjectCopy]", *, details: bool) -> Score:
    copy = copies.get()
    try:
        started_at = time.monotonic()
        score = Score(guard, copy.seconds_of(guard.tests))
        original = (copy.root / guard.module).read_text()
        for mutant in guard.mutants(copy.root):
            outcome, failed = copy.try_mutant(guard.module, mutant, guard.tests, score.tests_seconds)
            difference = mutant.difference(original)
            if details:
                typer.echo(f"{guard.module}: {mutant.change}: {outcome.value} {failed}\n{difference}\n")
            if outcome is Outcome.KILLED:
                score.killed += 1
            elif outcome is Outcome.TIMED_OUT:
                score.timed_out += 1
            elif difference.strip() in guard.equivalent:
                score.equivalent += 1
            else:
                score.survivors.append(f"{mutant.change}\n{difference}")
        score.seconds = time.monotonic() - started_at
        _report(score)
        return score
    finally:
        copies.put(copy)


def _report(score: Score) -> None:
    """Print a module's survivors when it is done, so that a run that is stopped has said something."""
    typer.echo(
        f"{score.guard.module}: {len(score.survivors)} of {score.total} survived, {score.seconds:.0f} s"
    )
    for survivor in score.survivors:
        typer.echo(f"\n{survivor}\n")


def _show(scores: list[Score]) -> None:
    counted = ("mutants", "killed", "timed out", "equivalent", "survived")
    table = Table("module", *counted, "share", "tests, s", "all, s")
    for score in scores:
        counts = [score.total, score.killed, score.timed_out, score.equivalent, len(score.survivors)]
        seconds = [f"{score.tests_seconds:.0f}", f"{score.seconds:.0f}"]
        table.add_row(score.guard.module, *map(str, counts), f"{score.share:.0%}", *seconds)
    Console(width=140).print(table)


def main(
    only: Annotated[list[str], typer.Option(help="Only modules whose path contains this.")] = [],  # noqa: B006
    jobs: Annotated[int, typer.Option(help="Modules at a time.")] = 2,
    details: Annotated[bool, typer.Option(help="Say of each mutant which test failed.")] = False,  # noqa: FBT002
) -> None:
    """Try the mutants of every module that guards something."""
    started_at = time.monotonic()
    folder_of_lists = Path(__file__).parent
    listed = [guard for name in _LISTS for guard in guards.load(folder_of_lists / name)]
    chosen = [guard for guard in listed if not only or any(part in guard.module for part in only)]
    with memory_folder() as folder, ExitStack() as stack:
        copies: Queue[ProjectCopy] = Queue()
        for number in range(jobs):
            copies.put(stack.enter_context(ProjectCopy.create(_ROOT, folder / str(number))))
        with ThreadPoolExecutor(jobs) as pool:
            scores = list(pool.map(lambda guard: _score(guard, copies, details=details), chosen))
    _show(scores)
    slow = [score.guard.module for score in scores if score.tests_seconds > LONGEST_TESTS_SECONDS]
    typer.echo(f"{sum(score.total for score in scores)} mutants in {time.monotonic() - started_at:.0f} s")
    if slow:
        typer.echo(f"tests of more than {LONGEST_TESTS_SECONDS:.0f} s: {', '.join(slow)}")
    if not all(score.is_enough for score in scores):
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
