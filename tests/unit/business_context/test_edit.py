"""A person writes the business context anew: it is stored as written, and promoted lines keep sources."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shared.foundation.origin import UNKNOWN
from shared.memory.business_context.edit import edit
from shared.memory.business_context.part import Part, Row, parts_of, promoted_line, provenance, text_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def promoted(position: int, content: str, session_id: str = "s") -> Row:
    row_id = f"{position}-{session_id}"
    return Row(
        row_id, position, promoted_line(content), "a", "u", session_id, f"of {row_id}", "why", NOW, UNKNOWN
    )


def own(position: int, content: str) -> Row:
    return Row(f"own-{position}", position, content, None, None, None, None, None, NOW, UNKNOWN)


def apply(parts: list[Part], text: str) -> list[Part]:
    """Return the parts that an edit stores."""
    result = edit(parts, text)
    kept = [
        replace(row, position=position, content=line)
        for part, position, line in result.kept
        for row in part.rows
    ]
    return parts_of([*kept, *(own(position, content) for position, content in result.own)])


def sources(parts: list[Part]) -> list[tuple[int, str]]:
    return [(source["line"], source["session_id"]) for source in provenance(parts)]


lines = st.sampled_from(
    ["", "# Inn", "- The office opens at nine.", "- Kiel has two rooms.", "so what", "\t"]
)
texts = st.lists(lines, max_size=8).map("\n".join)


@given(texts, texts)
def test_the_text_is_stored_as_it_was_written(before: str, after: str) -> None:
    parts = apply(
        parts_of([promoted(0, "The office opens at nine."), promoted(1, "Kiel has two rooms.")]), before
    )
    assert text_of(parts) == before
    edited_parts = apply(parts, after)
    assert text_of(edited_parts) == after
    assert [row.snippet_id for part in apply(edited_parts, after) for row in part.rows] == [
        row.snippet_id for part in edited_parts for row in part.rows
    ]


def test_a_line_keeps_its_sources_wherever_it_stands_now() -> None:
    rows = [
        own(0, "# Inn"),
        promoted(1, "One fact.", "s"),
        promoted(1, "One fact", "t"),
        promoted(2, "Two.", "u"),
    ]
    parts = apply(parts_of([own(0, "# Inn"), *rows]), "- Two.\n\nmore\n- One fact.")
    assert sources(parts) == [(1, "u"), (4, "s"), (4, "t")]


def test_a_reworded_line_keeps_its_sources_and_another_is_the_persons_own() -> None:
    rows = [promoted(0, "The office in Kiel opens at nine."), promoted(1, "Ada keeps the keys.", "t")]
    parts = apply(parts_of(rows), "- The Kiel office opens at ten.\n- Trains run hourly.")
    assert sources(parts) == [(1, "s")]
    assert parts[0].text == "- The Kiel office opens at ten."


def test_a_line_that_still_stands_there_goes_before_one_that_is_only_like_it() -> None:
    rows = [promoted(0, "Kiel has two rooms."), promoted(1, "Kiel has two rooms now.", "t")]
    assert sources(apply(parts_of(rows), "- Kiel has two rooms now.")) == [(1, "t")]


def test_half_of_the_words_are_enough_also_beside_a_line_that_stays() -> None:
    rows = [promoted(0, "Ada keeps keys."), promoted(1, "red green blue", "t")]
    assert sources(apply(parts_of(rows), "- Ada keeps keys.\n- red green grey")) == [(1, "s"), (2, "t")]


def test_a_line_that_is_not_there_any_more_is_deleted() -> None:
    result = edit(parts_of([promoted(0, "One."), promoted(1, "Two.")]), "- One.")
    assert [part.text for part, _, _ in result.kept] == ["- One."]
    assert edit(parts_of([promoted(0, "One.")]), "").kept == []


def test_a_promoted_text_is_one_line_whatever_it_holds() -> None:
    assert "\n" not in promoted_line("one\n# Two\r\n- three\u2028four")
