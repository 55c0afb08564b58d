"""The one tokenizer: what counts as a word, in the index, in its Postgres stand-in and in ranking.

Decisions
- Unicode words (letters, marks, digits) after NFKC and case folding. Accents of Latin and Greek, and
  the vowel points of Arabic and Hebrew, are folded on both sides: "cafe" finds "café" and the reverse.
  Marks that make another letter (й, が, Indic vowels) stay.
- No word is too short. "C#", "C++" and a single emoji are words of their own. What punctuation
  joins is found whole and in parts: "UTC-6" gives utc-6, utc, 6 and "e-mail" gives email, e,
  mail. "1,000" is 1000.
- Scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese; Hangul too, for its endings) give
  pairs of neighbouring characters; documents also give single ones, for queries of one character.
- English inflections are folded by `stems`; other languages pass through nearly untouched, and what
  is cut is cut in documents and queries alike.
- A question's grammar ("what did I …") is left out of queries, never out of documents, and never
  when nothing else would remain.
"""

import re
import sys
import unicodedata
from functools import lru_cache
from itertools import pairwise

from shared.search.text import stemmer

# A text is scanned up to here (characters); the stores allow turns of 256 000.
MAX_CHARS = 300_000
# A query is read up to here: a pasted log is no question, and each word of a query costs the index.
MAX_QUERY_CHARS = 4000
_MOST_PHRASES = 32
_CACHED_PIECES = 100_000
# Longer pieces hardly come twice, and would let one caller fill the memory.
_LONGEST_CACHED = 40
_LONGEST_WORD = 64

_GRAMMAR = """
    a about according after all also am an and any are as at be been before being between both but by
    can could did do does doing during each ever few for from further get gets getting give given got had
    has have having he her here hers herself him himself his how i if in into is it its itself just kind
    let like list made make many me might more most much my myself of on once or other our ours out over
    own please recently same shall she should so some such tell than that the their theirs them themselves
    then there these they this those through to too type under until up upon us use various very was we
    were what when where which while who whom whose why will with would you your yours yourself
    mention mentioned one
    dont didnt doesnt isnt wasnt havent hasnt cant couldnt wouldnt shouldnt arent werent im ive
"""
QUESTION_WORDS = frozenset(_GRAMMAR.split())

_MARKS = "".join(c for c in map(chr, range(0x300, 0x10000)) if unicodedata.category(c) in ("Mn", "Mc"))
_CHAR = rf"(?:[^\W_]|[{_MARKS}])"
_APOSTROPHES = "'\u2019"
_EMOJI = "[\u2600-\u27bf\u2b50\U0001f300-\U0001faff]"
_PIECE = re.compile(rf"{_CHAR}+(?:[{_APOSTROPHES}_./:@+&,-]{_CHAR}+)*(?:\+\+|\#(?![A-Za-z0-9_]))?|{_EMOJI}")
_SYMBOL = re.compile(_EMOJI)
_PART = re.compile(rf"{_CHAR}+")
_SUFFIX = re.compile(rf"(?:n[{_APOSTROPHES}]t|[{_APOSTROPHES}](?:s|re|ve|ll|d|m))$")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_UNIT = re.compile(r"(\d+)([a-z]{1,2})")
_HUMP = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z]{2})")
# The mark comes first in the pattern and its letter is looked back for: five times faster to scan.
_ACCENTS = re.compile(r"[\u0300-\u036f](?<=[A-Za-z\u0370-\u03ff].)[\u0300-\u036f]*")
_POINTS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")
# What normalisation could change: not the dashes, quotes, arrows and emoji of otherwise plain English,
# for which the slow way would cost ten times the fast one.
_FOLDABLE = re.compile(
    "[\u00a8-\u1fff\u2070-\u218f\u2c00-\ud7ff\uf900-\uffff\U00010000-\U0001efff\U00020000-\U0003ffff]"
)
# Letters that no decomposition takes apart; the last two are the dotless i and the Cyrillic yo.
_LETTERS = str.maketrans(
    {"đ": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "\u0131": "i", "\u0451": "\u0435"}
)
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]+")
_CLUSTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)


def tokenize(text: str) -> list[str]:
    """Return the terms of a document in reading order, repeats included."""
    return [term for piece in _pieces(text) for term in _terms_of(piece, single=True)]


def tokenize_query(text: str) -> list[str]:
    """Return the terms of a query in reading order, each once, without the grammar of questions."""
    pieces = _pieces(text[:MAX_QUERY_CHARS])
    terms = list(dict.fromkeys(term for piece in pieces for term in _terms_of(piece, single=False)))
    telling = [term for term in terms if term not in _QUESTION_TERMS]
    return telling or terms


def query_phrases(text: str) -> list[str]:
    """Return the pairs of neighbouring telling words of a query, as they would stand in `folded` text.

    A run of three or more characters of a script without spaces is a phrase by itself.
    """
    pieces = _pieces(text[:MAX_QUERY_CHARS].casefold())
    runs = [piece for piece in pieces if len(piece) > len("ab") and _UNSPACED.fullmatch(piece)]
    pairs = [f"{a} {b}" for a, b in pairwise(pieces) if not {a, b} & QUESTION_WORDS]
    return list(dict.fromkeys(runs + pairs))[:_MOST_PHRASES]


def normalize(text: str) -> str:
    """Return the text as phrases are compared: case and accents folded."""
    return _plain(text).casefold()


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(_plain(text))


def _plain(text: str) -> str:
    text = text[:MAX_CHARS]
    if text.isascii() or not _FOLDABLE.search(text):
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    unmarked = _POINTS.sub("", _ACCENTS.sub("", decomposed))
    return unicodedata.normalize("NFKC", unmarked)


def _terms_of(piece: str, *, single: bool) -> tuple[str, ...]:
    if len(piece) > _LONGEST_CACHED:
        return _terms.__wrapped__(piece, single=single)
    return _terms(piece, single=single)


@lru_cache(_CACHED_PIECES)
def _terms(piece: str, *, single: bool) -> tuple[str, ...]:
    if piece.isascii() and piece.isalpha():
        return tuple(_word_and_humps(piece))
    if _UNSPACED.search(piece):
        return tuple(_mixed(piece, single=single))
    if _SYMBOL.fullmatch(piece):
        return (piece,)
    return tuple(_compound(piece))


def _word_and_humps(piece: str) -> list[str]:
    word = _term(piece)
    humps = _HUMP.split(piece)
    return [word] if len(humps) == 1 else [*map(_term, humps), word]


def _mixed(piece: str, *, single: bool) -> list[str]:
    terms: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(piece):
        terms += tokenize(piece[end : run.start()])
        terms += _grams(run.group(), single=single)
        end = run.end()
    return terms + tokenize(piece[end:])


def _grams(run: str, *, single: bool) -> list[str]:
    clusters = _CLUSTER.findall(run.casefold())
    pairs = [a + b for a, b in pairwise(clusters)]
    return [*clusters, *pairs] if single and pairs else pairs or clusters


def _compound(piece: str) -> list[str]:
    if _GROUPED.fullmatch(piece):
        return [piece.replace(",", "")]
    if "," in piece:
        return [term for part in piece.split(",") for term in _terms_of(part, single=True)]
    stripped = _SUFFIX.sub(lambda ending: "nt" if ending.group()[0] == "n" else "", piece)
    parts = _PART.findall(stripped)
    if len(parts) == 1:
        return _single(parts[0], stripped[len(parts[0]) :])
    whole = _whole(stripped.casefold().translate(_LETTERS))
    return [*(term for part in parts for term in _single(part, "")), whole]


def _single(part: str, ending: str) -> list[str]:
    if ending:  # "++" or "#"
        return [part.casefold() + ending]
    word = part.casefold().translate(_LETTERS)
    if ordinal := _ORDINAL.fullmatch(word):
        return [ordinal[1]]
    if unit := _UNIT.fullmatch(word):
        return [unit[1], unit[2], word]
    return _word_and_humps(part)


def _whole(joined: str) -> str:
    """Return what a compound is called as one word: digits keep their joints, letters do not."""
    if any(c.isdigit() for c in joined):
        return joined[:_LONGEST_WORD]
    return _term("".join(_PART.findall(joined)))


def _term(word: str) -> str:
    folded = word.casefold().translate(_LETTERS)[:_LONGEST_WORD]
    return sys.intern(stemmer.stem(folded) if folded.isascii() else folded)


_QUESTION_TERMS = frozenset(map(_term, QUESTION_WORDS))
