"""The documents name files, capabilities and each other; what they name must exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import tracked

DOCUMENTS = ("README.md", "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "docs/CAPABILITIES.md")
# Most files that a walk may name: a reader must be able to follow it in one sitting.
WALKS = {"A save": 12, "A turn": 14, "An enrichment": 14, "A dream pass": 14}
TOP_LEVEL = (
    "services",
    "workers",
    "shared",
    "migrations",
    "deploy",
    "tests",
    "benchmarks",
    "examples",
    "docs",
)
STATUSES = {"covered", "planned"}

_STEP = re.compile(r"^(?P<number>\d+)\. `(?P<path>[^`]+)`: ", re.MULTILINE)
_PATH = re.compile(rf"`((?:{'|'.join(TOP_LEVEL)})/[\w./-]+)`")
_LINK = re.compile(r"\]\((?P<path>[^)#:\s]*)(?:#(?P<heading>[^)\s]+))?\)")
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CAPABILITY = re.compile(r"^\| (?P<id>[A-Z][\w ]*) \| (?P<rule>[^|]+) \| (?P<status>\w+) \|$", re.MULTILINE)
_COVERED = re.compile(r"^\| (?P<id>[A-Z][\w ,]*?) +\| ", re.MULTILINE)
_TEST = re.compile(r"^\s*(?:async )?def test_(?P<name>\w+)", re.MULTILINE)
_FIRST_WORD = re.compile(r"[a-z]{2}\d+[a-z]?(?=_)")
_ANY_WORD = re.compile(r"(?<=_)[a-z]{2}\d+[a-z]?(?=_|$)")


@pytest.mark.parametrize(("heading", "most"), WALKS.items())
def test_a_walk_is_numbered_short_and_names_files_that_exist(
    repository: Path, heading: str, most: int
) -> None:
    section = _section((repository / "docs" / "ARCHITECTURE.md").read_text(), f"### {heading}")
    steps = list(_STEP.finditer(section))
    assert [int(step["number"]) for step in steps] == list(range(1, len(steps) + 1))
    paths = [step["path"] for step in steps]
    assert len(paths) == len(set(paths)), "a file is one step"
    assert 0 < len(paths) <= most
    assert not [path for path in paths if not (repository / path).is_file()]


def _section(text: str, heading: str) -> str:
    """Return the text from a heading to the next one of any level."""
    _, _, rest = text.partition(f"{heading}\n")
    assert rest, f"no heading '{heading}'"
    return re.split(r"^#{2,} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_that_a_document_names_exists(repository: Path, document: str) -> None:
    paths = set(_PATH.findall((repository / document).read_text()))
    assert not [path for path in paths if not (repository / path).exists()]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_link_of_a_document_leads_to_a_file_and_a_heading(repository: Path, document: str) -> None:
    page = repository / document
    broken = []
    for link in _LINK.finditer(_CODE_BLOCK.sub("", page.read_text())):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        if not target.exists() or (link["heading"] and link["heading"] not in _anchors(target)):
            broken.append(link[0])
    assert not broken


def _anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _CODE_BLOCK.sub("", document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_capability_has_one_line_and_a_known_status(repository: Path) -> None:
    rows = _capability_rows(repository)
    ids = [row["id"] for row in rows]
    assert len(ids) == len(set(ids)), "a capability has one line"
    assert {row["status"] for row in rows} == STATUSES


def test_a_capability_is_planned_exactly_when_no_test_covers_it(repository: Path) -> None:
    planned = {row["id"] for row in _capability_rows(repository) if row["status"] == "planned"}
    assert planned == _defined(repository) - _covered(repository)


def test_every_capability_that_the_coverage_or_a_test_name_cites_is_defined(repository: Path) -> None:
    defined = _defined(repository)
    assert not _covered(repository) - defined
    assert not {
        capability for capability in _cited_by_names(repository, defined) if capability not in defined
    }


def _capability_rows(repository: Path) -> list[re.Match[str]]:
    return list(_CAPABILITY.finditer((repository / "docs" / "CAPABILITIES.md").read_text()))


def _defined(repository: Path) -> set[str]:
    return {row["id"] for row in _capability_rows(repository)}


def _covered(repository: Path) -> set[str]:
    rows = _COVERED.finditer((repository / "tests" / "COVERAGE.md").read_text())
    return {row["id"] for row in rows}


def _cited_by_names(repository: Path, defined: set[str]) -> Iterator[str]:
    """Yield the ids in names of tests: any at the beginning, further on only those of a known family."""
    families = {capability[:2] for capability in defined}
    for path in tracked(repository, "tests/**/test_*.py"):
        for test in _TEST.finditer(path.read_text()):
            first = _FIRST_WORD.match(test["name"])
            words = [_as_id(word) for word in _ANY_WORD.findall(test["name"])]
            yield from [_as_id(first[0])] if first else []
            yield from [word for word in words if word[:2] in families]


def _as_id(word: str) -> str:
    """Return an id as it is written in documents: `se2b` is `SE2b`."""
    return word[:2].upper() + word[2:]
