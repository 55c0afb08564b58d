"""The files of the repository, as git tracks them."""

import ast
import gc
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("services", "workers", "shared", "migrations")


def tracked(repository: Path, *patterns: str) -> list[Path]:
    """Return the tracked files and those that could be added, but not what git ignores."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *patterns]
    output = subprocess.run(listing, cwd=repository, check=True, capture_output=True).stdout
    paths = (repository / name for name in output.decode().split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def sources(repository: Path) -> list[Path]:
    """Return the Python files of the product, without the migrations."""
    return [path for package in PACKAGES[:3] for path in tracked(repository, f"{package}/**.py")]


def parse(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    """Return the trees of files, each of which is parsed once for all tests of a worker: they only read."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        trees = {path: tree_of(path) for path in paths}
    finally:
        if was_enabled:
            gc.enable()
    gc.freeze()  # none of their million nodes is garbage, and to look for it takes longer than to parse
    return trees


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the tree of a file, which is parsed once."""
    return ast.parse(path.read_text())


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function's body, without its signature, docstring and decorators."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
