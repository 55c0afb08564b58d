"""Functions, files and module docstrings are short, and names say what is inside."""

import ast
from collections.abc import Mapping
from pathlib import Path
from statistics import median, quantiles

import pytest

from tests.architecture.tree import functions, length, parse, sources

MAX_FUNCTION_LINES, MAX_FILE_LINES, MAX_DOCSTRING_LINES = 50, 300, 25
VAGUE_FILES = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc", "core"}
VAGUE_CLASSES = ("Service", "Manager", "Helper")


@pytest.fixture(scope="module")
def modules(repository: Path) -> dict[Path, ast.Module]:
    return parse(sources(repository))


def test_no_function_is_over_50_lines_and_most_are_much_shorter(
    repository: Path, modules: Mapping[Path, ast.Module]
) -> None:
    all_functions = [(path, function) for path, tree in modules.items() for function in functions(tree)]
    lengths = {
        f"{path.relative_to(repository)}::{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path, function in all_functions
    }
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES}
    bodies = [length(function) for _, function in all_functions]
    assert median(bodies) <= 8
    assert quantiles(bodies, n=10)[-1] <= 25


def test_no_file_is_over_300_lines(repository: Path) -> None:
    lines = {str(path.relative_to(repository)): _count_lines(path) for path in sources(repository)}
    assert not {name: count for name, count in lines.items() if count > MAX_FILE_LINES}


def _count_lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_every_module_has_a_docstring_of_at_most_25_lines(
    repository: Path, modules: Mapping[Path, ast.Module]
) -> None:
    docstrings = {path: ast.get_docstring(tree) or "" for path, tree in modules.items()}
    assert not [str(path) for path, docstring in docstrings.items() if not docstring]
    # The docstring of `stages` shows the pipelines as a picture.
    with_picture = repository / "shared" / "foundation" / "stages.py"
    long = {path for path, docstring in docstrings.items() if docstring.count("\n") >= MAX_DOCSTRING_LINES}
    assert not {str(path) for path in long - {with_picture}}


def test_no_file_or_class_has_a_name_that_fits_anything(modules: Mapping[Path, ast.Module]) -> None:
    files = [path for path in modules if path.stem in VAGUE_FILES]
    classes = [
        f"{path}::{node.name}"
        for path, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE_CLASSES)
    ]
    assert not files
    assert not classes
