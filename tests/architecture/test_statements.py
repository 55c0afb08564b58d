"""Statements on a table stand in the files of statements of the package that owns the table."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.architecture.tree import parse, sources

CONSTRUCTORS = {"select", "insert", "update", "delete", "text", "union", "union_all"}
# Files and folders with statements that have another name, and why.
EXCEPTIONS = {
    "shared/infra/postgres.py": "opens transactions and builds conditions; it names no table",
    "shared/infra/key_look_up.py": "builds the look-up of keys in any table; it names none",
    "shared/lifecycle/register.py": "builds statements from what all tables declare, those of dreams too",
    "shared/records/record_type.py": "builds the statements that all kinds have; it names no table",
    "shared/jobs/": "is the queue and nothing else: a file is one step of it, with its statements",
    "shared/search/index/embedding_cache.py": "every statement on one table, and no others",
    "shared/search/index/generations.py": "every statement on one table, beside the class of its rows",
    "services/commands/wait.py": "asks whether Postgres answers, and Alembic's own table for the revision",
}
_WRITE = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)")


@pytest.fixture(scope="module")
def modules(repository: Path) -> dict[str, ast.Module]:
    trees = parse(sources(repository))
    return {path.relative_to(repository).as_posix(): tree for path, tree in trees.items()}


def test_statements_stand_in_files_of_statements(modules: Mapping[str, ast.Module]) -> None:
    assert not [
        f"{name}:{line}"
        for name, tree in modules.items()
        if not _is_for_statements(name) and not _exception(name)
        for line in _statements(tree)
    ]


def test_every_exception_is_needed(modules: Mapping[str, ast.Module]) -> None:
    used = {_exception(name) for name, tree in modules.items() if any(_statements(tree))}
    assert used - {None} == set(EXCEPTIONS)


def test_only_the_package_that_owns_a_table_writes_it(modules: Mapping[str, ast.Module]) -> None:
    owners = {
        table: _folder(name)
        for name, tree in modules.items()
        if name.endswith("/table.py")
        for table in _defined_tables(tree)
    }
    writes = [(name, *write) for name, tree in modules.items() for write in _writes(tree, owners)]
    assert {table for _, _, table, _ in writes} >= {"memory", "job", "turn", "charge", "dream_read_turn"}
    assert not [f"{name}:{line}: {table}" for name, line, table, owner in writes if owner != _folder(name)]


@pytest.mark.parametrize(
    "source",
    [
        "from sqlalchemy import select\nselect(1)",
        "from sqlalchemy import delete as remove\nremove(1)",
        "from sqlalchemy.dialects.postgresql import insert\ninsert(1)",
        "import sqlalchemy as sa\nsa.update(1)",
        "from a.table import memory\nmemory.delete()",
        "connection.exec_driver_sql('SELECT 1')",
    ],
)
def test_a_statement_is_recognised_however_it_is_built(source: str) -> None:
    assert len(list(_statements(ast.parse(source)))) == 1


def test_a_method_of_the_same_name_is_no_statement() -> None:
    assert not list(
        _statements(ast.parse("from x import delete\ndelete(1)\nwindow.delete(1)\nd.update(a=1)"))
    )


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def _is_for_statements(name: str) -> bool:
    """Return whether a file may have statements. A table needs `text` for its indexes and defaults."""
    stem = Path(name).stem
    return stem in {"queries", "table"} or stem.endswith("_queries")


def _exception(name: str) -> str | None:
    return next((prefix for prefix in EXCEPTIONS if name.startswith(prefix)), None)


def _statements(tree: ast.Module) -> Iterator[int]:
    """Yield the line of every call that makes a statement."""
    imports = _imports(tree)
    constructors = {alias for alias, (module, name) in imports.items() if _makes_statements(module, name)}
    bases = {alias for alias, (module, _) in imports.items() if module.endswith(".table")}
    bases |= {alias for alias, (module, name) in imports.items() if name == module == "sqlalchemy"}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in constructors:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr="exec_driver_sql")):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id=base), attr=name)) if base in bases:
                if name in CONSTRUCTORS:
                    yield node.lineno


def _makes_statements(module: str, name: str) -> bool:
    return module.partition(".")[0] == "sqlalchemy" and name in CONSTRUCTORS


def _imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return the imported names, as name in this file → (module, name there)."""
    names: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: (alias.name, alias.name) for alias in node.names}
    return names


def _defined_tables(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Table"), args=[ast.Constant(value=str(table)), *_]):
                yield table


def _writes(tree: ast.Module, owners: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield (line, table, owning folder) of every statement that writes, built or written as text."""
    imports = _imports(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="insert" | "update" | "delete"), args=[ast.Name(id=name), *_]):
                module, table = imports.get(name, ("", ""))
                if module.endswith(".table"):
                    yield node.lineno, table, module.removesuffix(".table").replace(".", "/")
            case ast.Constant(value=str(text)):
                tables = (match[1] for match in _WRITE.finditer(text))
                yield from ((node.lineno, table, owners[table]) for table in tables if table in owners)
