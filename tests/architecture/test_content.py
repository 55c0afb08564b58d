"""Every place that stores text says what deletes it, and what it says is what happens."""

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import ARRAY, JSON, Column, LargeBinary, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from migrations.schema import metadata
from shared.foundation.content import INFO, Content, Names, NoContent, declared_stores
from shared.foundation.stages import SEARCHABLE_KINDS
from shared.lifecycle import register, removal
from shared.memory.documents.stored_files import FILES
from tests.architecture.tree import tracked

TEXTUAL = (Text, JSON, LargeBinary, TSVECTOR, ARRAY)
TABLES = sorted(metadata.tables.values(), key=lambda table: table.name)


def textual_columns(table: Table) -> list[Column[str]]:
    return [column for column in table.c if isinstance(column.type, TEXTUAL)]


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_every_column_that_can_hold_text_says_what_deletes_it(table: Table) -> None:
    undeclared = [
        column.name
        for column in textual_columns(table)
        if not isinstance(column.info.get(INFO), Content | Names | NoContent)
    ]
    assert undeclared == [], "add info=content(), names(...) or no_content(why) to the column"


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_column_that_needs_no_deletion_says_why(table: Table) -> None:
    reasons = [column.info[INFO] for column in textual_columns(table)]
    assert all(reason.reason.strip() for reason in reasons if isinstance(reason, NoContent))


@pytest.mark.parametrize("table", TABLES, ids=str)
def test_a_deletion_reaches_every_column_with_content(table: Table) -> None:
    contents = {column.name for column in table.c if isinstance(column.info.get(INFO), Content)}
    cleared = {name for column in _naming(table) for name in column.info[INFO].columns}
    if contents - cleared:
        assert _is_deleted(table), f"no subject deletes the rows of {table.name}"


def _naming(table: Table) -> list[Column[str]]:
    return [column for column in table.c if isinstance(column.info.get(INFO), Names)]


def _is_deleted(table: Table) -> bool:
    """Tell whether a subject deletes the rows, or those of a table above, and these with them."""
    if any(column.info[INFO].effect == "delete_row" for column in _naming(table)):
        return True
    parents = [
        key.elements[0].column.table for key in table.foreign_key_constraints if key.ondelete == "CASCADE"
    ]
    return any(_is_deleted(parent) for parent in parents)


def test_what_a_declaration_clears_are_columns_of_the_table() -> None:
    for reference in register.references():
        names = [*reference.names.columns, *(name for name, _ in reference.names.only)]
        assert set(names) <= set(reference.table.c.keys()), reference.column


# Wake-ups without content, and digests of names: these end by themselves.
_WITHOUT_TEXT = {("redis", "celery"), ("redis", "scratch-name")}


def test_every_family_of_keys_and_points_says_what_deletes_it() -> None:
    declared = {(declaration.store, declaration.family) for declaration in declared_stores()}
    families = {removal.WINDOW, removal.SCRATCHPAD, removal.STATE, removal.WORKING, removal.SCRATCH}
    families |= {FILES, *(removal.points_of(kind) for kind in SEARCHABLE_KINDS)}
    assert declared - {tuple(family) for family in families} == _WITHOUT_TEXT
    assert {tuple(family) for family in families} < declared
    assert all(declaration.reason for declaration in declared_stores())


def test_keys_of_redis_are_built_only_by_modules_that_declare_them(repository: Path) -> None:
    files = [
        path
        for package in ("shared", "services", "workers")
        for path in tracked(repository, f"{package}/**/*.py")
        if "prefix}:" in path.read_text()
    ]
    found = [path.relative_to(repository).as_posix() for path in files]
    assert found
    undeclared = [name for name in found if "declare_store(" not in (repository / name).read_text()]
    assert undeclared == [], "declare the family of keys with declare_store"


@pytest.mark.parametrize("entry", ["services.gateway.app", "workers.sweep.tasks"])
def test_every_process_that_deletes_knows_every_table(entry: str, repository: Path) -> None:
    """The register walks the tables that are imported: one that is not would be passed over."""
    script = f"import {entry}; from shared.infra.postgres import metadata; print(*sorted(metadata.tables))"
    env = {"LOCI_REDIS_URL": "redis://127.0.0.1:1/0", "PATH": ""}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=True)
    missing = set(metadata.tables) - set(result.stdout.split())
    assert missing == set()
