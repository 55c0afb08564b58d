"""DR5, LT12: the form of an anti-pattern, and no duplicates."""

# ruff: noqa: RUF001 (texts of other scripts, and dashes, are the point)

import json

import pytest

from shared.dreams.passes import anti_patterns
from shared.dreams.verification import anti_pattern_form
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from tests.unit.dreams.builders import memory

SOUND = "Don't mail Kessler in English because nobody there reads it — instead write German."


@pytest.mark.parametrize(
    "text",
    [
        SOUND,
        SOUND.replace("—", "–"),
        SOUND.replace("—", "-"),
        SOUND.replace("—", "--"),
        SOUND.replace(" —", ";"),
        SOUND.replace("Don't", "Don\u2019t"),
        SOUND.replace("Don't", "Do not"),
        SOUND.replace("Don't", "never"),
        SOUND.replace("because", "for"),
        SOUND.replace("— instead", "— instead,"),
        SOUND.replace("— instead", "—instead"),
        "Don't deploy on Fridays\nbecause nobody is there\n— instead wait for Monday",
    ],
)
def test_a_warning_with_a_reason_and_an_alternative_is_well_formed(text: str) -> None:
    assert anti_pattern_form.is_well_formed(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Don't mail Kessler.",
        "Don't mail Kessler because nobody reads it.",
        "Don't mail Kessler — instead call.",
        "Don't for Kessler — instead call",
        "Mail Kessler because they read it — instead call",
        "Don't mail Kessler — instead call because nobody reads it",
        "Don't mail Kessler because nobody reads it — instead",
        "Don't mail Kessler because — instead call",
        "Don't mail Kessler because nobody reads it instead of calling",
        SOUND + "\x00",
        SOUND + "x" * 16_000,
        "Don't " + "because " * 3000,
    ],
)
def test_a_text_without_the_full_form_is_not_well_formed(text: str) -> None:
    assert not anti_pattern_form.is_well_formed(text)


def test_a_reply_is_parsed_with_category_and_tag_added() -> None:
    item = {
        "content": SOUND.replace("Don't", "**Don't**"),
        "category": "email",
        "tags": ["mail"],
        "sessionIds": ["s"],
    }
    [anti_pattern] = anti_patterns.parse(json.dumps({"toSave": [item]}))
    assert (anti_pattern.content, anti_pattern.category, anti_pattern.tags) == (
        SOUND,
        "anti-patterns/email",
        ("anti-pattern", "mail"),
    )
    assert anti_pattern.session_ids == ("s",)
    assert anti_pattern.draft.validated().category == "anti-patterns/email"
    assert anti_patterns.parse('{"toSave": []}') == []
    with pytest.raises(errors.InvalidModelReply):
        anti_patterns.parse("no")


@pytest.mark.parametrize(
    ("proposed", "category"),
    [
        (None, "anti-patterns/general"),
        ("anti-patterns", "anti-patterns/general"),
        ("Anti-Patterns", "anti-patterns/general"),
        ("Anti-Patterns/db", "Anti-Patterns/db"),
        ("anti-patterns/db", "anti-patterns/db"),
        ("general/x", "anti-patterns/general"),
        ("active-plans/x", "anti-patterns/general"),
    ],
)
def test_the_category_is_always_below_anti_patterns(proposed: str | None, category: str) -> None:
    [anti_pattern] = anti_patterns.parse(json.dumps([{"content": SOUND, "category": proposed}]))
    assert anti_pattern.category == category


def test_badly_formed_and_duplicate_anti_patterns_are_rejected_and_the_others_accepted() -> None:
    texts = [SOUND, SOUND.replace("German", "in German"), "Don't", "Don't run X because Y — instead Z"]
    proposed = anti_patterns.parse(json.dumps([{"content": text} for text in texts]))
    accepted, rejections = anti_patterns.check_new(proposed, [])
    assert [anti_pattern.content for anti_pattern in accepted] == [texts[0], texts[3]]
    assert [(rejection.code, rejection.item["index"]) for rejection in rejections] == [
        (RejectionCode.DUPLICATE, 1),
        (RejectionCode.MALFORMED, 2),
    ]
    assert anti_patterns.check_new(proposed[:1], [memory(1, SOUND.lower())])[0] == []
