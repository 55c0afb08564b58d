"""The modules that guard something, read from `guards.toml` and `changes.toml`."""

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants.mutant import Mutant, mutants_of, with_answer, with_change

_SEED = 20261122


@dataclass(frozen=True, slots=True)
class Guard:
    """A module, its tests, and how its mutants are chosen.

    `sample` is the number of mutants drawn, 0 for all. `equivalent` maps the text of a difference to the
    reason why both sources behave the same. A module with `changes` has those mutants only.
    """

    module: str
    tests: tuple[str, ...]
    sample: int
    equivalent: dict[str, str]
    answers: tuple[tuple[str, str], ...]
    changes: tuple[tuple[str, str, str], ...]

    def mutants(self, root: Path) -> list[Mutant]:
        """Return the chosen mutants: always the same ones for the same source."""
        source = (root / self.module).read_text()
        if self.changes:
            return [with_change(source, *change) for change in self.changes]
        mutants = mutants_of(source)
        if self.sample and len(mutants) > self.sample:
            mutants = random.Random(_SEED).sample(mutants, self.sample)
        named = [with_answer(source, function, answer) for function, answer in self.answers]
        return [*named, *mutants]


def load(path: Path) -> list[Guard]:
    """Read the guards of a file."""
    return [_from_entry(entry) for entry in tomllib.loads(path.read_text())["guard"]]


def _from_entry(entry: dict[str, Any]) -> Guard:
    changes = tuple((item["old"], item["new"], item["test"]) for item in entry.get("change", []))
    return Guard(
        module=entry["module"],
        tests=tuple(entry.get("tests") or dict.fromkeys(test for _, _, test in changes)),
        sample=entry.get("sample", 0),
        equivalent={item["difference"].strip(): item["reason"] for item in entry.get("equivalent", [])},
        answers=tuple((item["function"], item["returns"]) for item in entry.get("answer", [])),
        changes=changes,
    )
