"""Run `python -m tests.mutants`: try the mutants of every guard and print how many tests noticed."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.memory_folder import memory_folder
from tests.mutants import guard as guards
from tests.mutants.copy import LONGEST_TESTS_SECONDS, FailsUnchanged, ProjectCopy
from tests.mutants.guard import Guard
from tests.mutants.score import Score

_LISTS = ("guards.toml", "changes.toml")
_ROOT = Path(__file__).parent.parent.parent


def _score(guard: Guard, copies: "Queue[ProjectCopy]", *, details: bool) -> Score:
    copy = copies.get()
    score = Score(guard)
    started_at = time.monotonic()
    try:
        with copy.changing(guard.module):
            score.tests_seconds = copy.seconds_of(guard.tests)
            _try_all(score, copy, details=details)
            if not guard.changes:  # their tests have just passed
                copy.seconds_of(guard.tests)  # what fails by now for another reason has killed nothing
    except FailsUnchanged as error:
        score.fault = f"fails without any change: {error}"
    finally:
        copies.put(copy)
    score.seconds = time.monotonic() - started_at
    _report(score)
    return score


def _try_all(score: Score, copy: ProjectCopy, *, details: bool) -> None:
    guard = score.guard
    original = (copy.root / guard.module).read_text()
    for mutant in guard.mutants(copy.root):
        outcome, failed = copy.try_mutant(guard.module, mutant, guard.tests, score.tests_seconds)
        score.add(mutant, original, outcome)
        if details or mutant.is_named:
            typer.echo(f"{guard.module}: {mutant.change}: {outcome.value} {failed}")
        if details:
            typer.echo(f"{mutant.difference(original)}\n")


def _report(score: Score) -> None:
    """Print a module's survivors when it is done, so that a run that is stopped has said something."""
    typer.echo(
        f"{score.name}: {score.killed + score.timed_out} of {score.total} killed, {score.seconds:.0f} s"
        f" {score.fault}"
    )
    for survivor in score.survivors:
        typer.echo(f"\n{survivor}\n")


def _show(scores: list[Score]) -> None:
    counted = ("mutants", "killed", "timed out", "equivalent", "undecided", "survived")
    table = Table("module", *counted, "share", "tests, s", "all, s")
    for score in scores:
        survived = len(score.survivors) - score.undecided
        counts = [*(score.total, score.killed, score.timed_out, score.equivalent, score.undecided, survived)]
        seconds = [f"{score.tests_seconds:.0f}", f"{score.seconds:.0f}"]
        table.add_row(score.name, *map(str, counts), f"{score.share:.0%}", *seconds)
    Console(width=140).print(table)


def main(
    lists: Annotated[list[str], typer.Option(help="Only the guards of this list.")] = [*_LISTS],  # noqa: B006
    only: Annotated[list[str], typer.Option(help="Only modules whose path contains this.")] = [],  # noqa: B006
    jobs: Annotated[int, typer.Option(help="Modules at a time.")] = 2,
    details: Annotated[bool, typer.Option(help="Say of each mutant which test failed.")] = False,  # noqa: FBT002
) -> None:
    """Try the mutants of every module that guards something."""
    started_at = time.monotonic()
    folder_of_lists = Path(__file__).parent
    listed = [guard for name in lists for guard in guards.load(folder_of_lists / name)]
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
    for score in scores:
        if score.fault:
            typer.echo(f"{score.name}: {score.fault}")
    if slow:
        typer.echo(f"tests of more than {LONGEST_TESTS_SECONDS:.0f} s: {', '.join(slow)}")
    if not all(score.is_enough for score in scores):
        raise SystemExit(1)


if __name__ == "__main__":
    typer.run(main)
