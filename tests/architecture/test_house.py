"""DESIGN, the house: sizes that a reader can hold, and names that say what is inside."""

import ast
from pathlib import Path
from statistics import median, quantiles

from tests.architecture.tree import functions, length, sources

LONGEST_FUNCTION, LONGEST_FILE, LONGEST_DOCSTRING = 50, 300, 25
VAGUE_FILES = {"utils", "util", "common", "helpers", "helper", "base", "manager", "misc", "core"}
VAGUE_CLASSES = ("Service", "Manager", "Helper")


def test_no_function_is_over_50_lines_and_most_are_far_below(repository: Path) -> None:
    lengths = {
        f"{path.relative_to(repository)}::{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in sources(repository)
        for function in functions(path)
    }
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}
    bodies = [length(function) for path in sources(repository) for function in functions(path)]
    assert median(bodies) <= 8
    assert quantiles(bodies, n=10)[-1] <= 25


def test_no_file_is_over_300_lines(repository: Path) -> None:
    lines = {str(path.relative_to(repository)): _lines(path) for path in sources(repository)}
    assert not {name: count for name, count in lines.items() if count > LONGEST_FILE}


def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_every_module_begins_with_what_it_is_in_at_most_25_lines(repository: Path) -> None:
    told = {path: ast.get_docstring(ast.parse(path.read_text())) or "" for path in sources(repository)}
    assert not [str(path) for path, docstring in told.items() if not docstring]
    # `stages` draws a picture: the one page that is read first.
    drawn = repository / "shared" / "foundation" / "stages.py"
    long = {path for path, docstring in told.items() if docstring.count("\n") >= LONGEST_DOCSTRING}
    assert not {str(path) for path in long - {drawn}}


def test_names_are_nouns_of_the_house_and_never_drawers_for_anything(repository: Path) -> None:
    files = [path for path in sources(repository) if path.stem in VAGUE_FILES]
    classes = [
        f"{path}::{node.name}"
        for path in sources(repository)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and node.name.endswith(VAGUE_CLASSES)
    ]
    assert not files
    assert not classes
