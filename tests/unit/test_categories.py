"""LT2, LT12, DR12: categories and tags that give a memory a meaning, in any letter case."""

import pytest

from shared.foundation.categories import ANTI_PATTERNS, EPISODES, is_anti_pattern, is_below


@pytest.mark.parametrize(
    ("category", "expected"),
    [
        ("episodic", True),
        ("episodic/task", True),
        ("Episodic/task/x", True),
        ("EPISODIC", True),
        ("episodically", False),
        ("x/episodic", False),
        ("", False),
        (None, False),
    ],
)
def test_a_category_is_its_root_or_below_it_in_any_case(category: str | None, expected: bool) -> None:  # noqa: FBT001
    assert is_below(EPISODES, category) is expected


@pytest.mark.parametrize(
    ("category", "tags", "expected"),
    [
        (ANTI_PATTERNS, [], True),
        ("Anti-Patterns/email", [], True),
        (None, ["mail", "anti-pattern"], True),
        ("general", ["anti-pattern"], True),
        ("general", ["anti-patterns"], False),
        ("anti-patternsx", [], False),
    ],
)
def test_category_or_tag_makes_an_anti_pattern(
    category: str | None,
    tags: list[str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert is_anti_pattern(category, tags) is expected
