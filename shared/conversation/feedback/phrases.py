"""Compile the patterns of `phrases.txt`: how people object, by the structure of what they say.

A refusal opens a sentence (`no,`), perhaps after an interjection. It counts unless the rest of the
sentence is polite (`no, thanks`). A fault counts anywhere in a clause (`that's wrong`), unless the
words before it are hypothetical or report another person's words (`tell me if that's wrong`). The
comments in `phrases.txt` say what its other sections are; `detect.py` says how they are used. No
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
    sections = {name: "|".join(patterns) for name, patterns in lines.items()}
    return {name: pattern.replace("<ask>", f"(?:{sections['ask']})") for name, pattern in sections.items()}


def _remove_accents(pattern: str) -> str:
    """Remove accents as `normalize` does, but keep capitals, which have a meaning in a pattern."""
    decomposed = unicodedata.normalize("NFD", pattern).replace("ß", "ss")
    return unicodedata.normalize("NFC", _ACCENTS.sub("", decomposed))


def _alternatives(pattern: str) -> list[str]:
    """Split a pattern at those `|` that stand in no group."""
    parts, depth, is_escaped, in_set = [""], 0, False, False
    for character in pattern:
        if is_escaped:
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif in_set or character == "[":
            in_set = character != "]"
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif character == "|" and not depth:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _fast(section: str) -> re.Pattern[str]:
    """Compile a long section: alternatives with the same anchor share it, and so are tried only there.

    Behind an anchor of its own, each of some hundred alternatives is tried at every character.
    """
    groups: dict[str, list[str]] = {anchor: [] for anchor in ("^", r"\b", f"(?:{_SECTIONS['ask']})", "")}
    for alternative in _alternatives(_SECTIONS[section]):
        anchor = next(anchor for anchor in groups if alternative.startswith(anchor))
        groups[anchor].append(alternative.removeprefix(anchor))
    return re.compile("|".join(f"{anchor}(?:{'|'.join(group)})" for anchor, group in groups.items() if group))


def _whole_words(section: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{_SECTIONS[section]})(?!\w)")


_SECTIONS = _read_sections()
_PRAISE = f"(?:(?:{_SECTIONS['very']}) ?){{0,2}}(?:{_SECTIONS['fine']})"
_INTERJECTIONS = rf"(?:(?:{_SECTIONS['interjection']})[,!. ]{{1,3}}){{0,3}}"

REFUSAL = re.compile(rf"{_INTERJECTIONS}(?:{_SECTIONS['refusal']})\s*")
ACTUALLY = re.compile(rf"{_INTERJECTIONS}(?:{_SECTIONS['actually']})\s*")
AFFIRMATION = re.compile(rf"{_INTERJECTIONS}(?:{_SECTIONS['affirmation']})(?!\w)")
POLITE_REFUSAL = re.compile(_SECTIONS["harmless"].replace("<fine>", _PRAISE))
FAULT = _fast("fault")
DOUBTFUL_FAULT = _fast("doubtful")
HYPOTHETICAL = re.compile(_SECTIONS["supposing"])
OWN_MISTAKE = _fast("own-mistake")
OWN_ANSWER = re.compile(_SECTIONS["own-answer"])
OWN_LACK = re.compile(_SECTIONS["own-lack"])
OWN_NEGATION = re.compile(_SECTIONS["own-negation"])
FACT = re.compile(_SECTIONS["fact"])
WANTED = re.compile(rf"(?:{_SECTIONS['wanted']})(?!\w)")
WISH = re.compile(_SECTIONS["wish"])
ONLY = _whole_words("only")
NEGATION = _whole_words("negation")
EXCESS = _whole_words("excess")
EXISTENCE = _whole_words("existence")
STALE = _whole_words("stale")
QUESTION = re.compile(rf"\W*(?:{_SECTIONS['question']})(?!\w)")
POLITE_QUESTION = re.compile(rf"\W*(?:{_SECTIONS['polite-question']}) ")
CONTRAST = re.compile(
    rf"(?P<first>[^,;]{{1,80}}), ?(?:(?:{_SECTIONS['but']}) )?(?:{_SECTIONS['contrast']}) "
    rf"(?!(?:{_SECTIONS['no-contrast']})(?!\w))(?P<second>[^,;]{{1,50}})$"
)
DENIED_FIRST = re.compile(
    rf"(?<!\w)(?:{_SECTIONS['contrast']}) (?:(?:{_SECTIONS['article']})(?!\w)|\d)[^,;]{{1,40}}, ?"
    rf"(?:(?:{_SECTIONS['but']}) )?[^,;]{{1,40}}$"
)
FILLERS = frozenset(_SECTIONS["filler"].split())
