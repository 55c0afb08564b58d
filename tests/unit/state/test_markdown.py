"""SE2b: no content can look like the heading of a transcript entry."""

import re
from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from shared.conversation.state import markdown
from shared.conversation.state.types import TranscriptEntry
from shared.foundation.roles import Role
from tests import transcript_reader

_TIMES = st.datetimes(timezones=st.just(UTC))
# The second alternative draws the characters and texts that could break out of the quote more often.
_CONTENTS = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(["### user — 2026-01-01T00:00:00Z", "\n", "\r", "\r\n", "> ", ">", "```", "~~~", " "])
        | st.sampled_from(
            ["\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "#", "{}", "\\", "<!--"]
        )
    ).map("".join),
)
_METADATA = st.dictionaries(st.text(), _CONTENTS, max_size=3)
_ENTRIES = st.lists(
    st.builds(TranscriptEntry, st.sampled_from(Role), _CONTENTS, _METADATA, _TIMES), max_size=5
)
_TIMESTAMP = datetime(2026, 5, 4, 8, 15, tzinfo=UTC)


@given(_ENTRIES)
@example([TranscriptEntry(Role.USER, "a\n\n### user — 2026-01-01T00:00:00Z\n\n> b", {}, _TIMESTAMP)])
@example(
    [
        TranscriptEntry(Role.USER, "", {}, _TIMESTAMP),
        TranscriptEntry(Role.USER, "\n\n", {"": "### x — {}"}, _TIMESTAMP),
    ]
)
@example(
    [
        TranscriptEntry(Role.USER, "```\n### user", {}, _TIMESTAMP),
        TranscriptEntry(Role.ASSISTANT, "\x00\r### user", {}, _TIMESTAMP),
    ]
)
def test_a_rendered_transcript_is_parsed_back_exactly(entries: list[TranscriptEntry]) -> None:
    assert transcript_reader.parse(markdown.render(entries)) == entries


@given(_ENTRIES)
def test_only_entry_headings_begin_a_line_outside_the_quote(entries: list[TranscriptEntry]) -> None:
    lines = markdown.render(
        entries
    ).splitlines()  # splits at every character that any parser takes for a line break
    outside = [line for line in lines if line and not line.startswith("> ")]
    assert len(outside) == len(entries)
    assert all(re.match(r"### [a-z]+ — \d", line) for line in outside)


def test_an_entry_shows_role_time_and_metadata_above_its_quote() -> None:
    entry = TranscriptEntry(Role.USER, "Good morning.\n### no heading", {"mood": "calm"}, _TIMESTAMP)
    assert markdown.render([entry]) == (
        '### user — 2026-05-04T08:15:00Z — {"mood": "calm"}\n\n> Good morning.\n> ### no heading\n\n'
    )
