"""How files of binary formats begin, so that a text that merely quotes such a beginning is none of them."""

import re

_OTHERS = (
    (re.compile(rb"\x89PNG"), "a PNG picture"),
    (re.compile(rb"\xff\xd8\xff"), "a JPEG picture"),
    (re.compile(rb"GIF8[79]a.{0,6}[\x00-\x08\x0e-\x1f]", re.DOTALL), "a GIF picture"),
    (re.compile(rb"RIFF.{4}(?:WAVE|AVI |WEBP)", re.DOTALL), "a picture, sound or video"),
    (re.compile(rb"ID3[\x02-\x04]\x00"), "a sound"),
    (re.compile(rb"\x1f\x8b"), "a GZIP archive"),
    (re.compile(rb"7z\xbc\xaf\x27\x1c"), "a 7z archive"),
    (re.compile(rb"Rar!\x1a\x07"), "a RAR archive"),
    (re.compile(rb"\x7fELF"), "a program"),
    (re.compile(rb"MZ\x90"), "a program"),
    (re.compile(rb"SQLite format 3\x00"), "a database"),
)
_RTF = re.compile(rb"\{\\rtf\d")
_PDF = re.compile(rb"%PDF-\d\.\d")
_PDF_WITHIN_BYTES = 1024
# Most programs write a comment of such bytes into the second line, so that nobody takes the file for a text.
_BINARY_COMMENT = re.compile(rb"[^\r\n]*[\r\n]+%[\x80-\xff]{4}")
_OBJECT = re.compile(rb"\b\d+ \d+ obj\b")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_SAMPLE_BYTES = 65_536
_MAX_CONTROL_SHARE = 0.02


def is_pdf(content: bytes, *, is_named_so: bool) -> bool:
    """Tell whether a file is a PDF, and no text about PDF.

    Other bytes may stand before its header. A file of that header alone counts if its name or declared type
    says PDF: then it is answered that it is damaged.
    """
    header = _PDF.search(content, 0, _PDF_WITHIN_BYTES)
    if header is None:
        return False
    if is_named_so or _BINARY_COMMENT.match(content, header.end()) or _is_binary(content):
        return True
    is_first = not content[: header.start()].removeprefix(b"\xef\xbb\xbf").strip()
    return is_first and b"%%EOF" in content[-_PDF_WITHIN_BYTES:] and _OBJECT.search(content) is not None


def _is_binary(content: bytes) -> bool:
    sample = content[:_SAMPLE_BYTES]
    return len(_CONTROL.findall(sample)) > _MAX_CONTROL_SHARE * len(sample)


def name_of_other(content: bytes) -> str | None:
    """Return what a file is whose format is known and can't be read, or None."""
    if _RTF.match(content) and content.rstrip(b"\x00\r\n\t ").endswith(b"}"):
        return "an RTF document"
    return next((name for pattern, name in _OTHERS if pattern.match(content)), None)
