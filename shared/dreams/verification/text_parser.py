"""Take a text apart into what `specifics` compares: first addresses and moments, then word by word."""

import re
import unicodedata
from collections.abc import Iterator

from shared.dreams.verification import common_words, quantities
from shared.dreams.verification.specifics import UNSPACED, Kind, ParsedText, Specific
from shared.search.text import stemmer

_WEB = re.compile(r"(?:https?://|ftp://|www\.)[^\s<>\"'`\u201c\u201d()\[\]{}]+", re.IGNORECASE)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PATH = re.compile(r"(?<![\w/])(?:~|\.{1,2})?(?:/[\w.@+-]{1,80}){1,30}/?|(?<!\w)[A-Za-z]:\\[\w.\\-]{1,200}")
_QUOTED = re.compile(
    '"([^"\n]{1,300})"|\u201c([^\u201c\u201d\n]{1,300})\u201d|\u201e([^\u201c\u201d\u201e\n]{1,300})[\u201c\u201d]'
    "|\u00ab([^\u00ab\u00bb\n]{1,300})\u00bb|\u300c([^\u300c\u300d\n]{1,300})\u300d|`([^`\n]{1,300})`"
    "|(?<!\\w)'([^'\n]{2,300})'(?!\\w)|\u2018([^\u2018\u2019\n]{2,300})\u2019(?!\\w)"
)
_TRAILING = ".,;:!?\u2026 "
_LOANED = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_HAN = "\u4e00-\u9fff"
_TITLED = re.compile(
    f"[{_HAN}]{{1,2}}(?:さん|さま|様|くん|ちゃん|先生|氏)|[{_HAN}]{{2}}(?:市|省|县|県|區|区|町|村|路|街|公司|大学|駅|站)"
)

_JOINED = r"(?:(?<=\d)[,'\u2019](?=\d)|[._/:&@'\u2019\u2010\u2011-](?=\w))"
_PIECE = re.compile(rf"(?:[#@]|\$(?=[^\W\d]))?\w+(?:{_JOINED}\w+)*(?:\+\+|\#(?!\w))?")
_NUMBER = re.compile(r"\d+(?:[.,'\u2019/:]\d+)*")
_SPACED = re.compile(r"(?<![\w.,])(\d{1,3}(?: \d{3})+)(?!\w)")
_GLUED = re.compile(r"(\d+(?:[.,]\d+)*)([^\W\d_]{1,8})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er|e|\u00ba|\u00aa)", re.IGNORECASE)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_HUMP = re.compile(r"[^\W\d_](?<=[a-z\u00df-\u00ff])[A-Z]|[A-Z]{2}[a-z]{2}")
_OPENING = re.compile(
    r"(?:^|[.!?\u2026:;\u3002\uff01\uff1f\n>|(\[\u2022*#\u2013\u2014]|(?<!\w)-)[\"'\u201c\u201e\u2018\u00ab(\[*_`\s\u00bf\u00a1]*$"
)
_JOINT = re.compile("[-'\u2019\u2010\u2011/:]")


def parse_text(text: str) -> ParsedText:
    """Return a text taken apart."""
    plain = _SPACED.sub(lambda m: m[1].replace(" ", ""), unicodedata.normalize("NFKC", text))
    reading = ParsedText(text=_squeezed(plain))
    for shown in _verbatims(plain):
        reading.add(Specific(Kind.VERBATIM, _squeezed(shown), shown))
    rest = UNSPACED.sub(" \ufffc ", _read_moments(reading, _without_addresses(plain)))
    pieces = list(_PIECE.finditer(rest))
    # A title, or shouting: capitals that say nothing.
    shouted = len(pieces) > 3 and not any(match[0][0].islower() for match in pieces)
    for match in pieces:
        _read_piece(reading, rest, match, shouted=shouted)
    return reading


def _squeezed(text: str) -> str:
    straight = text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x201E: '"'})
    return " ".join(straight.casefold().split())


def _verbatims(text: str) -> Iterator[str]:
    """Yield what must come back as it stands: addresses, paths, quotations, loan words, titled names."""
    for pattern in (_WEB, _MAIL, _PATH, _QUOTED, _LOANED, _TITLED):
        for match in pattern.finditer(text):
            shown = match[match.lastindex or 0].strip(_TRAILING)
            if any(character.isalnum() for character in shown):
                yield shown


def _without_addresses(text: str) -> str:
    for pattern in (_WEB, _MAIL, _PATH):
        text = pattern.sub(" \ufffc ", text)
    return text


def _read_moments(reading: ParsedText, text: str) -> str:
    days, text = quantities.days(text)
    times, text = quantities.times(text)
    for kind, found, known in ((Kind.DAY, days, reading.days), (Kind.TIME, times, reading.times)):
        known.update(found)
        for key, shown in found.items():
            reading.add(Specific(kind, key, shown))
    return text


def _read_piece(reading: ParsedText, text: str, match: re.Match[str], *, shouted: bool) -> None:
    piece = match[0].strip("_")
    reading.words.add(_squeezed(piece))
    if _is_unit(text, match):
        return  # its number has it
    if glued := _glued(piece):
        reading.add_number(quantities.value(glued[0]), piece, quantities.named_unit(glued[1]))
    elif _DOTTED.fullmatch(piece):
        _read_word(reading, piece.replace(".", ""), starts=False, shouted=not piece.isupper())
    elif _is_code(piece):
        reading.capitals.update(part.casefold() for part in re.split(r"\W+", piece) if part[:1].isupper())
        reading.add(Specific(Kind.VERBATIM, _squeezed(piece), piece))
    else:
        _read_parts(reading, text, match, shouted=shouted)


def _is_unit(text: str, match: re.Match[str]) -> bool:
    if not quantities.named_unit(match[0]):
        return False
    before, after = (
        text[max(0, match.start() - 2) : match.start()].rstrip()[-1:],
        text[match.end() : match.end() + 2].strip(),
    )
    return before.isdecimal() or (match[0].isupper() and after[:1].isdecimal())


def _glued(piece: str) -> tuple[str, str] | None:
    """Part "10GB" and "2nd" into number and rest; None for what is no number with a unit."""
    if ordinal := _ORDINAL.fullmatch(piece):
        return ordinal[1], ""
    glued = _GLUED.fullmatch(piece)
    return (glued[1], glued[2]) if glued and quantities.named_unit(glued[2]) else None


def _is_code(piece: str) -> bool:
    """Tell whether a piece means something only as it is written: a name in code, a model, a file."""
    if piece[:1] in "#@$" or piece.endswith(("+", "#")) or any(c in piece for c in "_&@"):
        return True
    if _NUMBER.fullmatch(piece):
        return False
    parts = _JOINT.split(piece)
    if _NUMBER.fullmatch(parts[0]) and len(parts) > 1:  # "5-year", "5-6"
        parts = parts[1:]
    if any(c.isdecimal() for part in parts for c in part) and not all(map(_NUMBER.fullmatch, parts)):
        return True
    return "." in piece.strip("0123456789.") or piece.count("/") > 1 or _HUMP.search(piece) is not None


def _read_parts(reading: ParsedText, text: str, match: re.Match[str], *, shouted: bool) -> None:
    """Read what joints hold together, each part by itself: "Smith-Jones", "don't", "5-year", "5-6 km"."""
    piece = match[0].strip("_")
    parts = [piece] if _NUMBER.fullmatch(piece) else _JOINT.split(piece)
    starts = _starts_sentence(text, match.start())
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if _NUMBER.fullmatch(part):
            unit = quantities.named_unit(following) if following else ""
            if len(parts) == 1 or not following:
                unit = quantities.unit(text, match.start(), match.end())
            reading.add_number(_signed(text, match.start(), part), part, unit)
        else:
            _read_word(reading, part, starts=starts, shouted=shouted)
        starts = False


def _signed(text: str, start: int, digits: str) -> str:
    minus = (
        text[max(0, start - 1) : start] in {"-", "\u2212"}
        and not text[max(0, start - 2) : start - 1].isalnum()
    )
    return ("-" if minus else "") + quantities.value(digits)


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 12) : start]
    return _OPENING.search(before if start <= len(before) else f"x{before}") is not None


def _read_word(reading: ParsedText, word: str, *, starts: bool, shouted: bool) -> None:
    lower = word.casefold()
    reading.words.add(lower)
    reading.stems.add(stemmer.stem(lower))
    if number := quantities.spelled(lower):
        reading.add_number(number, word, "")
    if not word[:1].isupper():
        return
    reading.capitals.add(lower)
    if _is_acronym(word):
        # A single one is an acronym of the text's own; in a text of nothing but capitals any word may be.
        lower = word.removesuffix("s").casefold()
        reading.acronyms.add(lower)
        reading.add(Specific(Kind.SENTENCE_START if shouted else Kind.ACRONYM, lower, word))
    elif kind := _kind_of_name(word, starts=starts or shouted):
        reading.add(Specific(kind, lower, word))


def _is_acronym(word: str) -> bool:
    capitals = word.removesuffix("s")
    return len(capitals) > 1 and capitals.isupper()


def _kind_of_name(word: str, *, starts: bool) -> Kind | None:
    if len(word) == 1:
        return None if starts or word == "I" else Kind.NAME
    if starts:
        return None if common_words.is_common_opener(word) else Kind.SENTENCE_START
    return None if common_words.is_function_word(word) else Kind.NAME
