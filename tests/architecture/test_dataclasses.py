"""Dataclasses are values: they don't change once they are made, and have no attributes but their fields."""

import ast
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("services", "shared", "workers")
# Those that are filled step by step, by the function that made them.
_FILLED = {
    *("AppliedChanges", "Deletion", "ImportPlan", "MemoryFolder", "Outcome", "Report", "UndoneChanges"),
    *("Answers", "ContextInputs", "Counts", "IndexHits", "ParsedText", "PassContext"),
    *("KindReport", "ScopeReport", "WrittenRecords", "_Batch", "_UsedNames"),
    *("Withdrawal", "_Embedding", "SavedScope", "_TurnImport", "_Undone"),
    "UndoneProposals",
    *("AppliedGraph", "Checked", "GraphChanges", "UndoneGraph", "_Found"),
    *("CheckedReview", "GraphBatch", "GroupsPrompt"),
}


def _dataclasses() -> Iterator[tuple[str, set[str]]]:
    """Yield the name of each dataclass, with those of its options that are switched on."""
    for path in (path for package in _PACKAGES for path in (_ROOT / package).rglob("*.py")):
        source = path.read_text()
        if "@dataclass" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                yield from ((node.name, options) for options in _options(node))


def _options(node: ast.ClassDef) -> Iterator[set[str]]:
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else ast.Call(decorator, [], [])
        if isinstance(call.func, ast.Name) and call.func.id == "dataclass":
            values = ((keyword.arg, keyword.value) for keyword in call.keywords)
            yield {name for name, value in values if name and ast.unparse(value) == "True"}


def test_a_dataclass_does_not_change_unless_it_is_filled_step_by_step() -> None:
    assert {name for name, options in _dataclasses() if "frozen" not in options} == _FILLED


def test_a_dataclass_has_slots() -> None:
    assert not [name for name, options in _dataclasses() if "slots" not in options]
