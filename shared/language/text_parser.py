"""Parse a text into the parts that `specifics` compares: first addresses, days and times, then each word."""

import re
import unicodedata
from collections.abc import Iterator

from shared.language import common_words, quantities
from shared.language.specifics import UNSPACED, Kind, ParsedText, Specific
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
_LOAN_WORD = re.compile("[\u30a1-\u30fa\u30fc]{2,}")
_HAN = "\u4e00-\u9fff"
_NAME_WITH_TITLE = re.compile(
    f"[{_HAN}]{{1,2}}(?:さん|さま|様|くん|ちゃん|先生|氏)|[{_HAN}]{{2}}(?:市|省|县|県|區|区|町|村|路|街|公司|大学|駅|站)"
)

_JOINED = r"(?:(?<=\d)[,'\u2019](?=\d)|[._/:&@'\u2019\u2010\u2011-](?=\w))"
_PIECE = re.compile(rf"(?:[#@]|\$(?=[^\W\d]))?\w+(?:{_JOINED}\w+)*(?:\+\+|\#(?!\w))?")
_NUMBER = re.compile(r"\d+(?:[.,'\u2019/:]\d+)*")
_SPACED = re.compile(r"(?<![\w.,])(\d{1,3}(?: \d{3})+)(?!\w)")
_BARE_FRACTION = re.compile(r"(?<![\w.])\.(?=\d)")
_MIN_SEQUENCE = 3
"""Numbers joined by hyphens from which their order matters: "1-2-3-4" opens a lock, "5-6" is a range."""
_NUMBER_WITH_UNIT = re.compile(r"(\d+(?:[.,]\d+)*)([^\W\d_]{1,8})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th|er|e|\u00ba|\u00aa)", re.IGNORECASE)
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_CAMEL_CASE = re.compile(r"[^\W\d_](?<=[a-z\u00df-\u00ff])[A-Z]|[A-Z]{2}[a-z]{2}")
_CAPITAL_INSIDE = re.compile(r"[a-z][A-Z]|\d[A-Z].*[a-z]|[a-z].*\d[A-Z]|[A-Z]\d[a-z]")
_SENTENCE_OPENING = re.compile(
    r"(?:^|[.!?\u2026:;\u3002\uff01\uff1f\n>|(\[\u2022*#\u2013\u2014]|(?<!\w)-)[\"'\u201c\u201e\u2018\u00ab(\[*_`\s\u00bf\u00a1]*$"
)
_JOINT = re.compile("[-'\u2019\u2010\u2011/:]")


def parse_text(text: str) -> ParsedText:
    """Return the parts of a text."""
    plain = _SPACED.sub(lambda m: m[1].replace(" ", ""), unicodedata.normalize("NFKC", text))
    plain = _BARE_FRACTION.sub("0.", plain)
    parsed = ParsedText(text=_normalize(plain))
    for wording in _find_verbatims(plain):
        parsed.add(Specific(Kind.VERBATIM, _normalize(wording), wording))
    rest = UNSPACED.sub(" \ufffc ", _parse_moments(parsed, _without_addresses(plain)))
    pieces = list(_PIECE.finditer(rest))
    # A title or a text in capitals: there a capital says nothing about a word.
    is_capitalized = len(pieces) > 3 and not any(match[0][0].islower() for match in pieces)
    for match in pieces:
        _parse_piece(parsed, rest, match, is_capitalized=is_capitalized)
    return parsed


def _normalize(text: str) -> str:
    straight = text.translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"', 0x201E: '"'})
    return " ".join(straight.casefold().split())


def _find_verbatims(text: str) -> Iterator[str]:
    """Yield what must be kept as it is written: addresses, paths, quotations, loan words, titled names."""
    for pattern in (_WEB, _MAIL, _PATH, _QUOTED, _LOAN_WORD, _NAME_WITH_TITLE):
        for match in pattern.finditer(text):
            wording = match[match.lastindex or 0].strip(_TRAILING)
            if any(character.isalnum() for character in wording):
                yield wording


def _without_addresses(text: str) -> str:
    for pattern in (_WEB, _MAIL, _PATH):
        text = pattern.sub(" \ufffc ", text)
    return text


def _parse_moments(parsed: ParsedText, text: str) -> str:
    """Add the days and times of a text; return the text without them."""
    days, text = quantities.days(text)
    times, text = quantities.times(text)
    for kind, wordings, keys in ((Kind.DAY, days, parsed.days), (Kind.TIME, times, parsed.times)):
        keys.update(wordings)
        for key, wording in wordings.items():
            parsed.add(Specific(kind, key, wording))
    return text


def _parse_piece(parsed: ParsedText, text: str, match: re.Match[str], *, is_capitalized: bool) -> None:
    piece = match[0].strip("_")
    parsed.words.add(_normalize(piece))
    parsed.pieces.add(piece)
    if _is_unit(text, match):
        return  # it is stored with its number
    if number_and_unit := _split_unit(piece):
        digits, unit = number_and_unit
        parsed.add_number(quantities.value(digits), piece, quantities.named_unit(unit))
    elif _DOTTED.fullmatch(piece):
        _parse_word(parsed, piece.replace(".", ""), is_first=False, is_capitalized=not piece.isupper())
    elif _is_key(piece):
        parsed.add(Specific(Kind.KEY, piece, piece))
    elif _is_code(piece):
        parsed.capitals.update(part.casefold() for part in re.split(r"\W+", piece) if part[:1].isupper())
        parsed.add(Specific(Kind.VERBATIM, _normalize(piece), piece))
    else:
        _parse_parts(parsed, text, match, is_capitalized=is_capitalized)


def _is_unit(text: str, match: re.Match[str]) -> bool:
    if not quantities.named_unit(match[0]):
        return False
    before, after = (
        text[max(0, match.start() - 2) : match.start()].rstrip()[-1:],
        text[match.end() : match.end() + 2].strip(),
    )
    return before.isdecimal() or (match[0].isupper() and after[:1].isdecimal())


def _split_unit(piece: str) -> tuple[str, str] | None:
    """Split "10GB" and "2nd" into number and unit. Return None for what is no number with a unit."""
    if ordinal := _ORDINAL.fullmatch(piece):
        return ordinal[1], ""
    match = _NUMBER_WITH_UNIT.fullmatch(piece)
    return (match[1], match[2]) if match and quantities.named_unit(match[2]) else None


def _is_key(piece: str) -> bool:
    """Tell whether a piece looks like a password or a key, in which the case of a letter counts."""
    return piece.isalnum() and any(map(str.isdecimal, piece)) and _CAPITAL_INSIDE.search(piece) is not None


def _is_code(piece: str) -> bool:
    """Tell whether a piece must be kept as it is written: an identifier, a model number, a file name."""
    if piece[:1] in "#@$" or piece.endswith(("+", "#")) or any(c in piece for c in "_&@"):
        return True
    if _NUMBER.fullmatch(piece):
        return False
    parts = _JOINT.split(piece)
    if len(parts) >= _MIN_SEQUENCE and all(map(_NUMBER.fullmatch, parts)):
        return True
    if _NUMBER.fullmatch(parts[0]) and len(parts) > 1:  # "5-year", "5-6"
        parts = parts[1:]
    if any(c.isdecimal() for part in parts for c in part) and not all(map(_NUMBER.fullmatch, parts)):
        return True
    return "." in piece.strip("0123456789.") or piece.count("/") > 1 or _CAMEL_CASE.search(piece) is not None


def _parse_parts(parsed: ParsedText, text: str, match: re.Match[str], *, is_capitalized: bool) -> None:
    """Parse each part of a compound by itself: "Smith-Jones", "don't", "5-year", "5-6 km"."""
    piece = match[0].strip("_")
    parts = [piece] if _NUMBER.fullmatch(piece) else _JOINT.split(piece)
    is_first = _starts_sentence(text, match.start())
    for part, following in zip(parts, [*parts[1:], ""], strict=True):
        if _NUMBER.fullmatch(part):
            unit = quantities.named_unit(following) if following else ""
            if len(parts) == 1 or not following:
                unit = quantities.unit(text, match.start(), match.end())
            parsed.add_number(_signed(text, match.start(), part), part, unit)
        else:
            _parse_word(parsed, part, is_first=is_first, is_capitalized=is_capitalized)
        is_first = False


def _signed(text: str, start: int, digits: str) -> str:
    is_negative = (
        text[max(0, start - 1) : start] in {"-", "\u2212"}
        and not text[max(0, start - 2) : start - 1].isalnum()
    )
    return ("-" if is_negative else "") + quantities.value(digits)


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 12) : start]
    return _SENTENCE_OPENING.search(before if start <= len(before) else f"x{before}") is not None


def _parse_word(parsed: ParsedText, word: str, *, is_first: bool, is_capitalized: bool) -> None:
    lower = word.casefold()
    parsed.words.add(lower)
    parsed.stems.add(stemmer.stem(lower))
    if number := quantities.spelled(lower):
        parsed.add_number(number, word, "")
    if not word[:1].isupper():
        return
    parsed.capitals.add(lower)
    if _is_acronym(word):
        # In a text in capitals every word looks like an acronym, so it counts as an ordinary word there.
        lower = word.removesuffix("s").casefold()
        parsed.acronyms.add(lower)
        parsed.add(Specific(Kind.SENTENCE_START if is_capitalized else Kind.ACRONYM, lower, word))
    elif kind := _kind_of_name(word, is_first=is_first or is_capitalized):
        parsed.add(Specific(kind, lower, word))


def _is_acronym(word: str) -> bool:
    capitals = word.removesuffix("s")
    return len(capitals) > 1 and capitals.isupper()


def _kind_of_name(word: str, *, is_first: bool) -> Kind | None:
    if len(word) == 1:
        return None if is_first or word == "I" else Kind.NAME
    if is_first:
        return None if common_words.is_common_opener(word) else Kind.SENTENCE_START
    return None if common_words.is_function_word(word) else Kind.NAME
