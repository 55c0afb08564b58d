"""Words that Loci no longer uses appear in no name, docstring or document.

Each of them was once the private name of something that has a usual one: a job, a wake-up, the working
memory, a periodic task. Names are split at underscores and at camel-case humps, so that `heartbeat` and
`monitoring` are words of their own.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.tree import tracked, tree_of

_RETIRED = (
    "bell doorbell ring hand_on heart night desk told tally tick canary strays followed bury buried twin"
    " clock house nursery grounds fading put_off give_back head_start"
)
WORDS = [tuple(word.split("_")) for word in _RETIRED.split()]
# Word, path, reason.
EXCEPTIONS = {
    ("tick", "workers/runtime/beat.py", "overrides celery.beat.Scheduler.tick"),
    ("tick", "services/gateway/drain.py", "overrides uvicorn.Server.on_tick"),
    ("canary", "README.md", "a release through a canary, in the words of the demo's user"),
}
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**.md", "deploy/**.md")

_FIRST_PART = re.compile("|".join({word[0] for word in WORDS}), re.IGNORECASE)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_METRIC_OR_TASK = re.compile(r"loci_\w+|(?:enrichment|embedding|summary|dream|sweep)\.\w+")
_FIELDS_OF_NAMES = {"id", "attr", "arg", "name", "asname", "module", "rest"}
_NAMES_AN_EVENT_OR_COUNTER = {
    *("debug", "info", "warning", "error", "exception", "critical"),
    *("increment", "increment_detached", "set_gauge"),
}


def test_no_python_file_uses_a_retired_word(repository: Path) -> None:
    assert not _uses(repository, tracked(repository, "*.py"), _python_texts)


def test_no_document_uses_a_retired_word(repository: Path) -> None:
    assert not _uses(repository, tracked(repository, *DOCUMENTS), _document_lines)


def test_the_exceptions_are_few_and_each_is_needed(repository: Path) -> None:
    assert len(EXCEPTIONS) <= 10
    for word, path, reason in EXCEPTIONS:
        assert reason
        texts = _python_texts if path.endswith(".py") else _document_lines
        assert word in {used for _, text in texts(repository / path) for used in retired_words(text)}, path


def test_a_retired_word_is_found_as_a_whole_part_only() -> None:
    assert retired_words("give_back") == ["give_back"]
    assert retired_words("HandOnTask and the desks") == ["hand_on"]
    assert retired_words("heartbeat, monitoring, String, clockwise") == []


@cache
def retired_words(text: str) -> list[str]:
    """Return the retired words in a name or a text."""
    if not _FIRST_PART.search(text):
        return []
    # Postgres's function of that name is not ours to rename.
    parts = [part.lower() for part in _PART.findall(text.replace("clock_timestamp", ""))]
    return [
        "_".join(word)
        for word in WORDS
        for start in range(len(parts) - len(word) + 1)
        if tuple(parts[start : start + len(word)]) == word
    ]


def _uses(repository: Path, paths: list[Path], texts: object) -> list[str]:
    assert callable(texts)
    allowed = {(word, path) for word, path, _ in EXCEPTIONS}
    return [
        f"{path.relative_to(repository)}:{line}: {word}"
        for path in paths
        for line, text in [(0, str(path.relative_to(repository))), *texts(path)]
        for word in retired_words(text)
        if (word, str(path.relative_to(repository))) not in allowed
    ]


def _document_lines(path: Path) -> Iterator[tuple[int, str]]:
    yield from enumerate(path.read_text().splitlines(), start=1)


def _python_texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the names and docstrings of a file, and its metric, task and event names, with their lines."""
    for node in ast.walk(tree_of(path)):
        yield from ((getattr(node, "lineno", 1), name) for name in _identifiers(node))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        if isinstance(node, ast.Call) and _called_name(node) in _NAMES_AN_EVENT_OR_COUNTER:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and re.fullmatch(r"\w+", str(argument.value)):
                    yield argument.lineno, str(argument.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_name(node.value):
            yield node.lineno, node.value


def _is_name(text: str) -> bool:
    """Tell whether a text is the name of a metric or of a task."""
    return _METRIC_OR_TASK.fullmatch(text) is not None


def _called_name(call: ast.Call) -> str | None:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else None


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Yield the names in a node: of variables, attributes, arguments, functions, modules."""
    for field in node._fields:
        if field in _FIELDS_OF_NAMES and isinstance(name := getattr(node, field), str):
            yield name
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    if isinstance(node, ast.MatchClass):
        yield from node.kwd_attrs
