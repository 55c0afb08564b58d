"""A text that quotes how other formats begin is a text, and such a file is still recognised."""

import pytest

from shared.memory.documents.parsed import Unreadable
from tests.unit.parsing import files
from workers.documents.parsing.detect import Format, detect
from workers.documents.parsing.read import read

_PDF_SOURCE = "%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n"


@pytest.mark.parametrize(
    "text",
    [
        "%PDF-1.7 is how a PDF of version 1.7 begins.",
        "A PDF begins with %PDF-1.7, a ZIP archive with PK, and ends with %%EOF.\n",
        f"This is a small PDF:\n\n{_PDF_SOURCE}\nIt has one object.",
        f"{_PDF_SOURCE}\nSo begins every small PDF.",
        "PK stands for Phil Katz.",
        "PK\\x03\\x04 are the first bytes of a ZIP archive.",
        "WEBVTT is a format of captions.",
        "RIFF is a container of WAVE sounds.",
        "ID3 tags name the artist of a song.",
        "GIF89a is a format of pictures.",
        "Rar! begins an archive.",
        "SQLite format 3 has a header of 100 bytes.",
        "{\\rtf1 begins an RTF document, and } ends it.",
    ],
)
def test_a_text_that_quotes_the_beginning_of_another_format_is_a_text(text: str) -> None:
    for name in ("notes.txt", "notes.md", "notes"):
        document = read(text.encode(), name, None)
        assert document.media_type in ("text/plain", "text/markdown")
        assert "\n".join(block.text for block in document.blocks).split() == text.split()


def test_a_pdf_is_one_whatever_its_name_and_whatever_stands_before_it() -> None:
    content = files.pdf(["The office opens at nine."])
    without_comment = content.replace(content.split(b"\n")[1], b"%abcd")
    for variant in (content, b"\r\n" + content, b"some words\n" + content, without_comment):
        document = read(variant, "notes.txt", "text/plain")
        assert document.media_type == "application/pdf"
        assert "opens at nine" in document.blocks[0].text


@pytest.mark.parametrize(("name", "declared_type"), [("plan.pdf", None), ("plan", "application/pdf")])
def test_what_is_called_a_pdf_and_begins_as_one_is_answered_as_a_damaged_one(
    name: str, declared_type: str | None
) -> None:
    with pytest.raises(Unreadable, match="begins as a PDF"):
        read(b"%PDF-1.7 and nothing else", name, declared_type)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("WEBVTT\n\n00:01.000 --> 00:02.000\nYes.\n", "call.txt"),
        ("WEBVTT\n\nNOTE nobody spoke\n", "call.vtt"),
    ],
)
def test_a_transcript_has_a_time_or_is_named_so(text: str, name: str) -> None:
    assert detect(text.encode(), name, None) == Format.WEBVTT
