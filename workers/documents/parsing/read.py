"""Read a file: tell what it is, and take its text. Each parser is imported when a file needs it."""

from shared.memory.documents.parsed import Block, ParsedDocument, Unreadable
from workers.documents.parsing.detect import Format, detect
from workers.documents.parsing.limits import MAX_BLOCKS, MAX_TEXT_BYTES, too_much_text
from workers.documents.parsing.text import decode, lines_of, paragraphs

_MAX_TITLE_CHARACTERS = 300


def read(content: bytes, file_name: str, declared_type: str | None) -> ParsedDocument:
    """Return the text of a file. Raises Unreadable if it has none that can be read."""
    file_format = detect(content, file_name, declared_type)
    try:
        title, blocks = _read_as(file_format, content)
    except RecursionError as error:
        raise Unreadable("damaged", "The file nests its parts too deep.") from error
    _check(blocks)
    return ParsedDocument(_short(title), file_format.value, blocks)


def _read_as(file_format: Format, content: bytes) -> tuple[str | None, tuple[Block, ...]]:
    if file_format == Format.PDF:
        from workers.documents.parsing.pdf import read_pdf

        return read_pdf(content)
    if file_format == Format.WORD:
        from workers.documents.parsing.word import read_word

        return read_word(content)
    if file_format == Format.SLACK:
        from workers.documents.parsing.slack import read_slack

        return read_slack(content)
    if file_format == Format.MAIL:
        from workers.documents.parsing.mail import read_mail

        return read_mail(content)
    return _read_text_as(file_format, decode(content) or "")


def _read_text_as(file_format: Format, text: str) -> tuple[str | None, tuple[Block, ...]]:
    if file_format == Format.HTML:
        from workers.documents.parsing.web_page import read_html

        return read_html(text)
    if file_format == Format.MARKDOWN:
        from workers.documents.parsing.markdown import read_markdown

        return read_markdown(text)
    if file_format in {Format.WEBVTT, Format.SUBRIP}:
        from workers.documents.parsing.transcript import read_transcript

        return read_transcript(text, file_format)
    if file_format == Format.CSV:
        from workers.documents.parsing.csv_rows import read_csv

        return None, read_csv(text)
    return None, tuple(paragraphs(lines_of(text)))


def _check(blocks: tuple[Block, ...]) -> None:
    if not blocks:
        raise Unreadable("no_text", "The file has no text.")
    if len(blocks) > MAX_BLOCKS or sum(len(block.text.encode()) for block in blocks) > MAX_TEXT_BYTES:
        raise too_much_text()


def _short(title: str | None) -> str | None:
    return " ".join(title.split())[:_MAX_TITLE_CHARACTERS] if title else None
