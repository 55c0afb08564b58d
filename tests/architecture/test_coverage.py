"""tests/COVERAGE.md names the tests of each capability, and each of these tests exists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.tree import tree_of

_ROW = re.compile(r"^\| (?P<row>[A-Z]{2}\d+[a-z]?|[A-Z][\w ,]*) \| (?P<what>[^|]+) \| (?P<tests>[^|]+) \|$")
_TEST = re.compile(r"`([^`]+)::([^`]+)`")


def test_every_line_of_the_table_names_a_capability_and_at_least_one_test(repository: Path) -> None:
    rows = list(_rows(repository))
    assert rows
    names = [row for row, _ in rows]
    assert sorted(set(names)) == sorted(names), "a capability has one line"
    assert not [row for row, tests in rows if not tests]


def test_every_test_that_the_table_names_exists(repository: Path) -> None:
    listed = {test for _, tests in _rows(repository) for test in tests}
    missing = {f"{path}::{name}" for path, name in listed if name not in _tests(repository / "tests" / path)}
    assert not missing


def _rows(repository: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    lines = (repository / "tests" / "COVERAGE.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("|")]
    for line in table[2:]:
        match = _ROW.fullmatch(line)
        assert match is not None, f"not a row of the table: {line}"
        yield match["row"], [(path, name) for path, name in _TEST.findall(match["tests"])]


@cache
def _tests(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    nodes = ast.walk(tree_of(path))
    functions = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {name for name in functions if name.startswith("test_")}
