"""DR5, LT12: the form of an anti-pattern, and none twice."""

# ruff: noqa: RUF001 (texts of other scripts, and dashes, are the point)

import json

import pytest

from shared.dreams.passes import anti_patterns
from shared.dreams.verification import anti_pattern_form
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import errors
from tests.unit.dreams.entries import entry

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
def test_a_warning_with_reason_and_way_out_is_well_formed(text: str) -> None:
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
def test_anything_less_is_not(text: str) -> None:
    assert not anti_pattern_form.is_well_formed(text)


def test_a_reply_is_read_with_category_and_tag_in_place() -> None:
    told = {
        "content": SOUND.replace("Don't", "**Don't**"),
        "category": "email",
        "tags": ["mail"],
        "sessionIds": ["s"],
    }
    [one] = anti_patterns.parse(json.dumps({"toSave": [told]}))
    assert (one.content, one.category, one.tags) == (SOUND, "anti-patterns/email", ("anti-pattern", "mail"))
    assert one.session_ids == ("s",)
    assert one.draft.validated().category == "anti-patterns/email"
    assert anti_patterns.parse('{"toSave": []}') == []
    with pytest.raises(errors.InvalidModelReply):
        anti_patterns.parse("no")


@pytest.mark.parametrize(
    ("offered", "category"),
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
def test_the_category_is_always_one_of_anti_patterns(offered: str | None, category: str) -> None:
    [one] = anti_patterns.parse(json.dumps([{"content": SOUND, "category": offered}]))
    assert one.category == category


def test_the_badly_formed_and_the_known_are_refused_and_the_rest_is_kept() -> None:
    texts = [SOUND, SOUND.replace("German", "in German"), "Don't", "Don't run X because Y — instead Z"]
    found = anti_patterns.parse(json.dumps([{"content": text} for text in texts]))
    accepted, rejections = anti_patterns.check_new(found, [])
    assert [one.content for one in accepted] == [texts[0], texts[3]]
    assert [(one.code, one.item["index"]) for one in rejections] == [
        (RejectionCode.DUPLICATE, 1),
        (RejectionCode.MALFORMED, 2),
    ]
    assert anti_patterns.check_new(found[:1], [entry(1, SOUND.lower())])[0] == []
