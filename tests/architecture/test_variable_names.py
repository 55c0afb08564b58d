"""Variables are named after what they hold, and modules keep their names when they are imported."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.architecture.tree import PACKAGES, parse, tracked

UNNAMED = {"one", "told", "mine", "here", "whose", "beside", "again", "each", "it", "thing"}
# Alias, module, reason.
ALIASES = {
    ("np", "numpy", "the usual alias of NumPy"),
    ("sa", "sqlalchemy", "the usual alias of SQLAlchemy in migrations"),
    ("st", "strategies", "the usual alias of Hypothesis' strategies"),
}
_OWN = {*PACKAGES, "tests", "benchmarks"}


@pytest.fixture(scope="module")
def modules(repository: Path) -> dict[str, ast.Module]:
    trees = parse(tracked(repository, "*.py"))
    return {str(path.relative_to(repository)): tree for path, tree in trees.items()}


def test_no_variable_has_a_name_that_says_nothing_about_its_value(modules: Mapping[str, ast.Module]) -> None:
    assert not [
        f"{path}:{line}: {name}"
        for path, tree in modules.items()
        for line, name in _assigned_names(tree)
        if name in UNNAMED
    ]


def test_no_module_is_imported_under_a_name_without_its_own(
    repository: Path, modules: Mapping[str, ast.Module]
) -> None:
    """Of a name of several words the last is enough: `index_document as memory_document`."""
    allowed = {(alias, module) for alias, module, _ in ALIASES}
    assert not [
        f"{path}: {module} as {alias}"
        for path, tree in modules.items()
        for module, alias in _module_aliases(repository, tree)
        if module.rpartition("_")[2] not in alias and (alias, module) not in allowed
    ]


def _assigned_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
            yield node.lineno, node.name


def _module_aliases(repository: Path, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the last part of each module's name with its alias."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name.rpartition(".")[2], name.asname) for name in node.names if name.asname)
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                if name.asname and _is_module(repository, f"{node.module}.{name.name}"):
                    yield name.name, name.asname


@cache
def _is_module(repository: Path, name: str) -> bool:
    if name.partition(".")[0] in _OWN:
        path = repository.joinpath(*name.split("."))
        return path.is_dir() or path.with_suffix(".py").is_file()
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a class or function of a module
        return False
