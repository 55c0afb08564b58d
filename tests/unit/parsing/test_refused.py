"""Files that can't be read are refused with the reason and a sentence that says what to do."""

import io
import zipfile
from pathlib import Path

import pytest

from shared.memory.documents.parsed import Unreadable
from tests.unit.parsing import files
from workers.documents.parsing.read import read

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
_SHEET = files.archive_of({"[Content_Types].xml": "<Types/>", "xl/workbook.xml": "<workbook/>"})
_OPEN_DOCUMENT = files.archive_of({"mimetype": "application/vnd.oasis.opendocument.text"})
_DAY = "general/2024-01-01.json"


def _refusal(content: bytes, name: str = "file.txt", declared_type: str | None = "text/plain") -> Unreadable:
    with pytest.raises(Unreadable) as caught:
        read(content, name, declared_type)
    return caught.value


@pytest.mark.parametrize(
    ("content", "reason", "words"),
    [
        (b"", "no_text", "empty"),
        (b" \r\n\t ", "no_text", "empty"),
        (b"<html><body><script>evil()</script></body></html>", "no_text", "no text"),
        (files.picture_pdf(), "no_text", "scanned"),
        (files.pdf(["secret"], password="open sesame"), "encrypted", "PDF"),
        (files.pdf(["text"])[:300], "damaged", "PDF"),
        (_SHEET, "unsupported", "spreadsheet"),
        (_OLE + "Workbook".encode("utf-16-le"), "unsupported", "spreadsheet"),
        (_OLE + "WordDocument".encode("utf-16-le"), "unsupported", "save it as DOCX"),
        (_OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted", "Office"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "unsupported", "PNG"),
        (b"{\\rtf1 text}", "unsupported", "RTF"),
        (bytes(range(256)) * 20, "unsupported", "no known format"),
        (_OPEN_DOCUMENT, "unsupported", "OpenDocument"),
        (files.archive_of({"a.txt": "text"}), "unsupported", "Slack"),
        (b"PK\x03\x04 and nothing else", "damaged", "ZIP"),
        (files.encrypted_archive(), "encrypted", "archive"),
        (files.archive_of({"users.json": "{", "channels.json": "[]"}), "damaged", "JSON"),
        (files.archive_of({"users.json": "{}", "channels.json": "[]"}), "damaged", "list"),
        (files.archive_of({"[Content_Types].xml": "<Types/>", "word/document.xml": "<"}), "damaged", "DOCX"),
        (b"WEBVTT\n\n00:00:99.000 --> 00:00:02.000\nx", "no_text", "no text"),
    ],
)
def test_a_file_without_readable_text_is_refused_with_its_reason(
    content: bytes, reason: str, words: str
) -> None:
    refusal = _refusal(content)
    assert (refusal.reason, words in refusal.detail) == (reason, True), refusal.detail


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\\..\\..\\b", "general/../../x.json"])
def test_an_archive_with_a_name_that_points_outside_is_refused(name: str) -> None:
    refusal = _refusal(files.archive_of({"users.json": "[]", "channels.json": "[]", name: "[]"}))
    assert refusal.reason == "damaged"
    assert "outside" in refusal.detail


def _bomb(megabytes: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("users.json", "[]")
        archive.writestr("channels.json", "[]")
        with archive.open(_DAY, "w") as member:
            for _ in range(megabytes):
                member.write(bytes(1024 * 1024))
    return file.getvalue()


def test_a_zip_bomb_is_refused_by_what_it_declares_without_being_unpacked() -> None:
    refusal = _refusal(_bomb(40))
    assert (refusal.reason, "200 times" in refusal.detail) == ("too_large", True)


def test_no_more_is_unpacked_of_a_member_than_it_declares() -> None:
    content = bytearray(_bomb(40))
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (1000).to_bytes(4, "little")
    assert _refusal(bytes(content)).reason == "damaged"


def test_an_archive_that_unpacks_to_too_much_or_has_too_many_files_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = files.archive_of({"users.json": "[]", "channels.json": "[]", _DAY: "[]"})
    declared = bytearray(content)
    directory = declared.index(b"PK\x01\x02")
    declared[directory + 24 : directory + 28] = (300 * 1024**2).to_bytes(4, "little")
    assert "256 MiB" in _refusal(bytes(declared)).detail
    monkeypatch.setattr("workers.documents.parsing.archives._MAX_MEMBERS", 2)
    assert "more than 2 files" in _refusal(content).detail


def _word_with_entities(declarations: str, entity: str) -> bytes:
    content = files.change_word(files.word("Heading", ["marker"]), "marker", f"before &{entity}; after")
    doctype = f"<!DOCTYPE w:document [{declarations}]><w:document"
    return files.change_word(content, "<w:document", doctype)


def test_entities_of_xml_are_not_expanded(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    content = _word_with_entities(f'<!ENTITY file SYSTEM "{secret.as_uri()}"><!ENTITY word "secret">', "file")
    for named in (content, files.change_word(content, "&file;", "&word;")):
        assert "secret" not in "".join(block.text for block in read(named, "a.docx", None).blocks)
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 9))
    assert _refusal(_word_with_entities(f'<!ENTITY l0 "ha">{laughs}', "l8")).reason == "damaged"


_DEEP_JSON = "[" * 100_000 + "]" * 100_000
_DEEP_MAIL = "".join(
    f"--b{depth}\nContent-Type: multipart/mixed; boundary=b{depth + 1}\n\n" for depth in range(1200)
)


@pytest.mark.parametrize(
    "content",
    [
        files.archive_of({"users.json": "[]", "channels.json": "[]", _DAY: _DEEP_JSON}),
        b"<html>" + b"<div>" * 5000 + b"text" + b"</div>" * 5000 + b"<p>after</p>",
        f"From: a\nTo: b\nDate: c\nContent-Type: multipart/mixed; boundary=b0\n\n{_DEEP_MAIL}".encode(),
    ],
)
def test_parts_that_are_nested_too_deep_are_refused(content: bytes) -> None:
    assert _refusal(content).reason == "damaged"


def test_more_text_or_more_blocks_than_are_stored_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.documents.parsing.read.MAX_BLOCKS", 3)
    assert _refusal(b"a\n\nb\n\nc\n\nd").reason == "too_large"
    monkeypatch.setattr("workers.documents.parsing.text.MAX_LINES", 3)
    assert _refusal(b"a\nb\nc\nd").reason == "too_large"
    monkeypatch.setattr("workers.documents.parsing.read.MAX_TEXT_BYTES", 10)
    assert _refusal(b"more than ten bytes").reason == "too_large"
    assert read(b"ten bytes.", "a.txt", None).blocks
