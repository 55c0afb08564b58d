"""The tool that breaks guards changes what it should, and its list of guards is true."""

import ast
from pathlib import Path

import pytest

from tests.mutants import guard as guards
from tests.mutants.mutant import mutants_of, with_answer, with_change

SOURCE = '''"""A module."""


def may_read(age: int) -> bool:
    check(age)
    return age >= 18 and not hidden
'''
LISTS = Path(__file__).parents[2] / "mutants"
GUARDS = [*guards.load(LISTS / "guards.toml"), *guards.load(LISTS / "changes.toml")]


@pytest.mark.parametrize(
    "line",
    [
        "    return age > 18 and not hidden",
        "    return age >= 18 or not hidden",
        "    return age >= 19 and not hidden",
        "    return True",
        "    return False",
        "    pass",
    ],
)
def test_a_guard_is_broken_in_each_of_these_ways(line: str) -> None:
    assert any(line in mutant.source.splitlines() for mutant in mutants_of(SOURCE))


def test_every_mutant_differs_from_the_source_and_from_the_others() -> None:
    sources = [mutant.source for mutant in mutants_of(SOURCE)]
    assert SOURCE not in sources
    assert len(set(sources)) == len(sources)


def test_a_mutant_that_cannot_be_parsed_is_none() -> None:
    source = "def read() -> str:\n    if text := find():\n        return text\n    return ''\n"
    assert not [mutant for mutant in mutants_of(source) if "not text :=" in mutant.source]


def test_the_broken_guards_that_no_test_had_noticed_are_mutants_of_their_own() -> None:
    """Issue 10: what is unchanged, what was deleted, and which sessions are idle."""
    answers = {(guard.module, *answer) for guard in GUARDS for answer in guard.answers}
    assert answers >= {
        ("shared/dreams/runs/present.py", "is_unchanged", "True"),
        ("shared/dreams/runs/present.py", "_find_deleted_texts", "set()"),
        ("shared/conversation/sessions/queries.py", "list_idle", "[]"),
    }


def test_an_answer_replaces_the_whole_body_of_a_function() -> None:
    assert with_answer(SOURCE, "may_read", "None").source.endswith("-> bool:\n    return None\n")


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.module)
def test_modules_tests_and_functions_of_the_list_exist(guard: guards.Guard, repository: Path) -> None:
    assert all(_exists(repository, test) for test in guard.tests)
    source = (repository / guard.module).read_text()
    for function, answer in guard.answers:
        assert with_answer(source, function, answer).source != source
    for old, new, test in guard.changes:
        changed = with_change(source, old, new, test).source
        assert changed != source
        ast.parse(changed)  # otherwise any test would notice it


@pytest.mark.parametrize(
    "guard", [guard for guard in GUARDS if guard.equivalent], ids=lambda guard: guard.module
)
def test_what_is_called_equivalent_is_one_mutant(guard: guards.Guard, repository: Path) -> None:
    source = (repository / guard.module).read_text()
    lines = [mutant.changed_lines(source).strip() for mutant in guard.mutants(repository)]
    assert {lines.count(difference) for difference in guard.equivalent} == {1}


def _exists(repository: Path, test: str) -> bool:
    path, _, function = test.partition("::")
    file = repository / path
    return file.exists() and (not function or f"def {function}(" in file.read_text())
