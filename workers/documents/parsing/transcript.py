"""Read the transcripts of calls, VTT and SRT: a block is a caption, with its time and speaker."""

import html
import io

import webvtt
from webvtt.errors import MalformedCaptionError, MalformedFileError

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.detect import Format
from workers.documents.parsing.text import storable


def read_transcript(text: str, file_format: Format) -> tuple[str | None, tuple[Block, ...]]:
    """Return the blocks with the lines of the file."""
    text = storable(text.removeprefix("\ufeff"))
    kind = "vtt" if file_format == Format.WEBVTT else "srt"
    try:
        captions = webvtt.from_buffer(io.StringIO(text.lstrip()), format=kind).captions
    except (MalformedFileError, MalformedCaptionError) as error:
        raise Unreadable(
            "damaged", f"The file begins as a {kind.upper()} transcript, but is none."
        ) from error
    timing_lines = [number for number, line in enumerate(text.split("\n"), start=1) if "-->" in line]
    # A caption that could not be read has a line, too: which caption is which line is then unclear.
    lines = timing_lines if len(timing_lines) == len(captions) else [None] * len(captions)
    pairs = zip(captions, lines, strict=True)
    return None, tuple(_block(caption, line) for caption, line in pairs if caption.text.strip())


def _block(caption: webvtt.Caption, timing_line: int | None) -> Block:
    words = " ".join(html.unescape(caption.text).split())
    speaker = f"{caption.voice}: " if caption.voice else ""
    text = f"[{caption.start.partition('.')[0]}] {speaker}{words}"
    last_line = None if timing_line is None else timing_line + len(caption.lines)
    return Block(text, None, timing_line, last_line)
