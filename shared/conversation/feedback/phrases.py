"""Compile the patterns of `phrases.txt`: phrases with which people object.

A refusal opens a sentence (`no,`), perhaps after an interjection. It counts unless the rest of the
sentence is polite (`no, thanks`). A fault counts anywhere in a clause (`that's wrong`), unless the
words before it are hypothetical or report another person's words (`tell me if that's wrong`). No
pattern has an unbounded repetition of something that may also follow it, so that the time of a
search is linear in the length of the text.
"""

import re
import unicodedata
from importlib.resources import files

_ACCENTS = re.compile("[\u0300-\u036f]")


def normalize(text: str) -> str:
    """Return a text in lower case, with straight apostrophes and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.replace("\u2019", "'").casefold())
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def _read_sections() -> dict[str, str]:
    """Return each section of the file as one pattern of alternatives."""
    lines: dict[str, list[str]] = {}
    section = ""
    for line in files(__package__).joinpath("phrases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line and not line.startswith("#"):
            lines.setdefault(section, []).append(_remove_accents(line))
    return {name: "|".join(patterns) for name, patterns in lines.items()}


def _remove_accents(pattern: str) -> str:
    """Remove accents as `normalize` does, but keep capitals, which have a meaning in a pattern."""
    decomposed = unicodedata.normalize("NFD", pattern).replace("ß", "ss")
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


_SECTIONS = _read_sections()
_PRAISE = f"(?:(?:{_SECTIONS['very']}) ?){{0,2}}(?:{_SECTIONS['fine']})"
_INTERJECTIONS = rf"(?:(?:{_SECTIONS['interjection']})[,!. ]{{1,3}}){{0,3}}"

REFUSAL = re.compile(rf"{_INTERJECTIONS}(?:{_SECTIONS['refusal']})\s*")
POLITE_REFUSAL = re.compile(_SECTIONS["harmless"].replace("<fine>", _PRAISE))
FAULT = re.compile(_SECTIONS["fault"])
HYPOTHETICAL = re.compile(_SECTIONS["supposing"])
