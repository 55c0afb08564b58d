"""Which names and texts callers may send."""

import pytest

from shared.foundation import errors, validation
from shared.foundation.scope import check_id


@pytest.mark.parametrize("value", ["general", "user-preferences/inferred", "a/b/c_d-9", "A", "x" * 256])
def test_a_valid_category_is_returned_unchanged(value: str) -> None:
    assert validation.check_category(value) == value


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "blank"),
        (" \t", "blank"),
        ("/etc/passwd", "absolute"),
        ("a/../b", "'..'"),
        ("..", "'..'"),
        ("x" * 257, "256"),
        ("general\n", "ASCII letters"),
        ("a//b", "ASCII letters"),
        ("a/", "ASCII letters"),
        ("a b", "ASCII letters"),
        ("a.b", "ASCII letters"),
        ("straße", "ASCII letters"),
        ("٣", "ASCII letters"),
        ("\ud800", "ASCII letters"),
    ],
)
def test_a_bad_category_is_refused_with_the_rule_it_breaks(value: str, rule: str) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        validation.check_category(value)
    (violation,) = error_info.value.violations
    assert violation.field == "category"
    assert rule in violation.rule
    str(error_info.value).encode()


def test_an_identifier_has_at_most_128_characters() -> None:
    assert validation.check_identifier("a" * 128, "agent_id") == "a" * 128
    with pytest.raises(errors.TooLarge, match="agent_id: must be at most 128"):
        validation.check_identifier("a" * 129, "agent_id")


@pytest.mark.parametrize(
    ("category", "cleaned"),
    [
        ("project-context/loci", "project-context/loci"),
        ("-kept-", "-kept-"),
        ("  User Preferences / Food & Drink ", "User-Preferences/Food-Drink"),
        ("/absolute/path/", "absolute/path"),
        ("a/../b", "a/b"),
        ("anti-patterns\\e-mail", "anti-patterns/e-mail"),
        ("general\n", "general"),
        ("Städte", "Stadte"),
        ("日本/x", "x"),
        ("日本", None),
        ("../..", None),
        ("", None),
        (None, None),
        (["a"], None),
        ("\ud800", None),
    ],
)
def test_a_models_category_is_cleaned_or_dropped(category: str | None, cleaned: str | None) -> None:
    assert validation.sanitize_category(category) == cleaned


@pytest.mark.parametrize("category", ["a" * 300, "a" * 200 + "/" + "b" * 100, "é" * 400, "a/" * 200 + "a"])
def test_a_cleaned_category_is_always_a_valid_one(category: str) -> None:
    cleaned = validation.sanitize_category(category)
    assert cleaned is not None
    assert validation.check_category(cleaned) == cleaned


def test_an_overlong_category_loses_whole_segments() -> None:
    assert validation.sanitize_category("a" * 200 + "/" + "b" * 100) == "a" * 200


@pytest.mark.parametrize(
    ("value", "rule"), [(" \n", "blank"), ("a\x00b", "NUL"), ("a\udfffb", "surrogates"), ("abcdef", "5")]
)
def test_a_text_that_some_database_cannot_store_is_refused(value: str, rule: str) -> None:
    with pytest.raises(errors.Invalid, match=rule) as error_info:
        validation.check_text(value, "content", 5)
    assert error_info.value.violations[0].field == "content"


def test_a_valid_text_is_returned_unchanged() -> None:
    assert validation.check_text(" 日本 🎉\n", "content", 6) == " 日本 🎉\n"
    assert validation.check_text("", "value", allow_blank=True) == ""


def test_duplicate_tags_are_removed_and_the_order_is_kept() -> None:
    assert validation.check_tags(["b", "a", "b", "日本 語"]) == ("b", "a", "日本 語")


@pytest.mark.parametrize(
    ("tags", "field"),
    [
        (["ok", " "], "tags.1"),
        (["x" * 65], "tags.0"),
        (["two\nlines"], "tags.0"),
        (["two\u2028lines"], "tags.0"),
        (["\ud800"], "tags.0"),
        ([str(n) for n in range(65)], "tags"),
    ],
)
def test_a_bad_tag_is_refused_by_its_position(tags: list[str], field: str) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        validation.check_tags(tags)
    assert error_info.value.violations[0].field == field


def test_sixty_four_tags_of_sixty_four_characters_are_allowed() -> None:
    tags = [str(n).rjust(64, "x") for n in range(64)]
    assert validation.check_tags([*tags, *tags]) == tuple(tags)


def test_metadata_within_its_limits_is_kept() -> None:
    pairs = {f"{n}".rjust(64, "k"): "v" * 1024 for n in range(64)}
    assert validation.check_metadata(pairs) == pairs
    assert validation.check_metadata({"note": ""}) == {"note": ""}


@pytest.mark.parametrize(
    ("pairs", "field"),
    [
        ({str(n): "" for n in range(65)}, "metadata"),
        ({"": "x"}, "metadata.0"),
        ({"ok": "x", "k" * 65: "x"}, "metadata.1"),
        ({"note": "v" * 1025}, "metadata.note"),
        ({"note": "\x00"}, "metadata.note"),
    ],
)
def test_bad_metadata_is_refused_by_its_position_or_key(pairs: dict[str, str], field: str) -> None:
    with pytest.raises(errors.Invalid) as error_info:
        validation.check_metadata(pairs)
    assert error_info.value.violations[0].field == field


INVISIBLE = [
    "\u200b",
    "\u200b \u2060\n\ufeff",
    "\u200d\ufe0f",
    "\u00ad",
    "\u2800\u3164\uffa0",
    "\u202e\u2066",
    "\U000e0041\U000e007f",
    "\x01\x1b",
]


@pytest.mark.parametrize("text", INVISIBLE)
def test_a_text_without_a_visible_character_is_blank_wherever_a_blank_one_is_refused(text: str) -> None:
    for check in (
        lambda: validation.check_text(text, "content"),
        lambda: validation.check_single_line(text, "content", 100),
        lambda: validation.check_tags([text]),
        lambda: validation.check_identifier(text, "content"),
        lambda: check_id("content", text),
    ):
        with pytest.raises(errors.Invalid, match="blank"):
            check()


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d💻",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "a\u200b",
        "1\ufe0f\u20e3",
        "\u0301",
        "\u0601",
    ],
)
def test_joiners_within_a_text_are_kept(text: str) -> None:
    assert validation.check_text(text, "content") == text
    assert not validation.is_blank(text)
