"""Read the transcripts of calls, VTT and SRT: a block is a caption, with its time and who speaks in it.

Speakers are taken from the caption as it is written, because the parser knows one per caption at most, and
only where the caption begins with the voice: of two who speak in turns the second would be lost.
"""

import html
import io
import re

import webvtt
from webvtt.errors import MalformedCaptionError, MalformedFileError

from shared.memory.documents.parsed import Block, Unreadable
from workers.documents.parsing.detect import Format
from workers.documents.parsing.text import storable

_VOICE = re.compile(r"\s*<v(?:\.[^\s<>]*)*[ \t]+([^<>]*)>\s*")
# Tags of WebVTT and those of SRT that players know. What else stands in angle brackets is text.
_TAG = re.compile(r"</?(?:[biuvc]|ruby|rt|lang|font)(?:[.\s][^<>]*)?>|<\d+:[\d:.]+>", re.IGNORECASE)
_POSITION = re.compile(r"\{\\an?\d+\}")


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
    pairs = [(caption, _words(caption.raw_text), line) for caption, line in zip(captions, lines, strict=True)]
    return None, tuple(_block(caption, words, line) for caption, words, line in pairs if words)


def _words(raw_text: str) -> str:
    """Return what is said in a caption on one line, each voice by its name, as in `Ada: Hi. Bob: Hi.`."""
    named = _VOICE.sub(lambda match: f" {match[1].strip()}: " if match[1].strip() else " ", raw_text)
    plain = _POSITION.sub("", _TAG.sub("", named))
    return " ".join(html.unescape(plain).split())


def _block(caption: webvtt.Caption, words: str, timing_line: int | None) -> Block:
    text = f"[{caption.start.partition('.')[0]}] {words}"
    last_line = None if timing_line is None else timing_line + len(caption.lines)
    return Block(text, None, timing_line, last_line)
