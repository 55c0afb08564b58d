"""Make the files that are uploaded in tests."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import docx
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from fpdf import FPDF


def pdf(pages: Sequence[str], *, title: str | None = None, password: str | None = None) -> bytes:
    """Return a PDF with these texts on its pages."""
    document = FPDF()
    document.set_font("helvetica", size=11)
    if title:
        document.set_title(title)
    if password:
        document.set_encryption(owner_password="owner", user_password=password)
    for text in pages:
        document.add_page()
        document.multi_cell(0, 6, text)
    return bytes(document.output())


def picture_pdf() -> bytes:
    """Return a PDF whose only page shows a rectangle."""
    document = FPDF()
    document.add_page()
    document.rect(10, 10, 50, 50)
    return bytes(document.output())


def word(
    heading: str, paragraphs: Sequence[str], rows: Sequence[Sequence[str]] = (), *, title: str = ""
) -> bytes:
    """Return a DOCX document with a heading, paragraphs and a table."""
    document = docx.Document()
    document.core_properties.title = title
    document.add_heading(heading, level=1)
    for text in paragraphs:
        document.add_paragraph(text)
    table = document.add_table(len(rows), len(rows[0])) if rows else None
    for row_index, row in enumerate(rows):
        for column, text in enumerate(row):
            assert table is not None
            table.cell(row_index, column).text = text
    return _bytes(document.save)


def word_with_margins(*, header: str, footer: str, footnote: str, endnote: str) -> bytes:
    """Return a DOCX document of two sections with the same header and footer, and with notes."""
    document = docx.Document()
    document.add_heading("Our plan", level=1)
    document.add_paragraph("It begins.")
    document.add_section()
    document.add_paragraph("The second section.")
    for section in document.sections:
        section.header.is_linked_to_previous = section.footer.is_linked_to_previous = False
        section.header.paragraphs[0].text = header
        section.footer.paragraphs[0].text = footer
    for kind, text in (("footnote", footnote), ("endnote", endnote)):
        _add_notes(document, kind, text)
    return _bytes(document.save)


def _add_notes(document: Any, kind: str, text: str) -> None:
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    line = f'<w:{kind} w:id="-1" w:type="separator"><w:p><w:r><w:separator/></w:r></w:p></w:{kind}>'
    note = f'<w:{kind} w:id="2"><w:p><w:r><w:{kind}Ref/></w:r><w:r><w:t>{text}</w:t></w:r></w:p></w:{kind}>'
    xml = f'<w:{kind}s xmlns:w="{space}">{line}{note}</w:{kind}s>'
    media_type = f"application/vnd.openxmlformats-officedocument.wordprocessingml.{kind}s+xml"
    package = document.part.package
    part = Part(PackURI(f"/word/{kind}s.xml"), media_type, xml.encode(), package)
    document.part.relate_to(part, getattr(RELATIONSHIP_TYPE, f"{kind.upper()}S"))


def change_word(content: bytes, old: str, new: str) -> bytes:
    """Return a DOCX document in whose body one text was replaced by another, which may be XML."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    body = members["word/document.xml"].decode()
    assert old in body
    return archive_of({**members, "word/document.xml": body.replace(old, new)})


def archive_of(members: Mapping[str, str | bytes]) -> bytes:
    """Return a ZIP archive of these files."""

    def write(file: io.BytesIO) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return _bytes(write)


def slack(days: Mapping[str, Any], users: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """Return an export of Slack: messages by `channel/day.json`."""
    members = {name: json.dumps(messages) for name, messages in days.items()}
    return archive_of({"users.json": json.dumps(users), "channels.json": "[]", **members})


def encrypted_archive() -> bytes:
    """Return a ZIP archive whose member is marked as encrypted."""
    content = bytearray(archive_of({"users.json": "[]"}))
    directory = content.index(b"PK\x01\x02")
    content[6] |= 1
    content[directory + 8] |= 1
    return bytes(content)


def _bytes(save: Any) -> bytes:
    file = io.BytesIO()
    save(file)
    return file.getvalue()
