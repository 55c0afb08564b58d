"""The patterns of `phrases.txt`, compiled: how people say that the other got it wrong.

A refusal opens a sentence (`no,`), perhaps after an interjection, and counts unless what follows
is harmless (`no, thanks`). A fault counts wherever it stands in a clause (`that's wrong`), unless
the clause before it supposes something or reports somebody else's words (`tell me if that's
wrong`). No pattern repeats without a bound what may also follow it: a search is linear in the text.
"""

import re
import unicodedata
from importlib.resources import files

_MARKS = re.compile("[\u0300-\u036f]")


def normalize(text: str) -> str:
    """Return a text in small letters, with straight apostrophes and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.replace("\u2019", "'").casefold())
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


def _sections() -> dict[str, str]:
    """Return each section of the file as one alternation."""
    lines: dict[str, list[str]] = {}
    section = ""
    for line in files(__package__).joinpath("phrases.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
        elif line and not line.startswith("#"):
            lines.setdefault(section, []).append(_unaccented(line))
    return {name: "|".join(patterns) for name, patterns in lines.items()}


def _unaccented(pattern: str) -> str:
    """Take the accents off as `plain` does, and leave the capitals that mean something in a pattern."""
    decomposed = unicodedata.normalize("NFD", pattern).replace("ß", "ss")
    return unicodedata.normalize("NFC", _MARKS.sub("", decomposed))


_SECTIONS = _sections()
_FINE = f"(?:(?:{_SECTIONS['very']}) ?){{0,2}}(?:{_SECTIONS['fine']})"
_BEFORE = rf"(?:(?:{_SECTIONS['interjection']})[,!. ]{{1,3}}){{0,3}}"

REFUSAL = re.compile(rf"{_BEFORE}(?:{_SECTIONS['refusal']})\s*")
POLITE_REFUSAL = re.compile(_SECTIONS["harmless"].replace("<fine>", _FINE))
FAULT = re.compile(_SECTIONS["fault"])
HYPOTHETICAL = re.compile(_SECTIONS["supposing"])
