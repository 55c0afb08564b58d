"""Advisory locks differ by their number alone, so each must have one of its own."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.tree import PACKAGES, tree_of


def lock_numbers(path: Path) -> Iterator[int]:
    """Yield the numbers that a module calls a lock."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if any(name.endswith("LOCK") for name in names) and isinstance(node.value.value, int):
                yield node.value.value


def test_no_two_locks_have_one_number(repository: Path) -> None:
    paths = [path for package in PACKAGES for path in (repository / package).rglob("*.py")]
    numbers = [number for path in paths for number in lock_numbers(path)]
    assert len(numbers) >= 4
    assert len(set(numbers)) == len(numbers)
