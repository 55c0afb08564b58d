"""Split texts into terms. The index, the search in Postgres and the ranking all use this tokenizer.

- A term is a Unicode word (letters, marks, digits) after NFKC and case folding. Accents of Latin and
  Greek and the vowel points of Arabic and Hebrew are removed, so "cafe" finds "café" and the
  reverse. Marks that make another letter (й, が, Indic vowels) stay.
- There is no minimum length. "C#", "C++" and a single emoji are terms. Words joined by punctuation
  give the whole and the parts: "UTC-6" gives utc-6, utc and 6; "e-mail" gives email, e and mail.
  "1,000" gives 1000.
- Scripts without spaces (Han, kana, Thai, Lao, Khmer, Burmese; also Hangul, because of its endings)
  give pairs of neighbouring characters. Documents also give single characters, so that a query of one
  character finds them.
- English inflections are removed by `stemmer`. Words of other languages change little, and they change
  in documents and queries alike.
- Words of a question's grammar ("what did I …") are left out of queries, unless nothing else would
  remain. They are never left out of documents.
"""

import re
import sys
import unicodedata
from functools import lru_cache
from itertools import pairwise

from shared.search.text import stemmer

# Characters of a text that are read. Turns have at most 256 000.
MAX_CHARS = 300_000
# Characters of a query that are read. Each term takes time in the index, and a pasted log is no query.
MAX_QUERY_CHARS = 4000
_MAX_PHRASES = 32
_CACHED_PIECES = 100_000
# Longer pieces are rarely repeated, and one caller could fill the memory with them.
_MAX_CACHED_LENGTH = 40
_MAX_TERM_LENGTH = 64

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
_CAMEL_CASE = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z]{2})")
# The pattern begins with the mark and looks behind for its letter, which is five times faster.
_ACCENTS = re.compile(r"[\u0300-\u036f](?<=[A-Za-z\u0370-\u03ff].)[\u0300-\u036f]*")
_POINTS = re.compile(r"[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]")
# Characters that normalisation could change. The dashes, quotes, arrows and emoji of English texts are not
# among them, because full normalisation takes ten times as long.
_NEEDS_NORMALISING = re.compile(
    "[\u00a8-\u1fff\u2070-\u218f\u2c00-\ud7ff\uf900-\uffff\U00010000-\U0001efff\U00020000-\U0003ffff]"
)
# Letters that Unicode does not decompose; the last two are the dotless i and the Cyrillic yo.
_LETTERS = str.maketrans(
    {"đ": "d", "ø": "o", "ł": "l", "æ": "ae", "œ": "oe", "\u0131": "i", "\u0451": "\u0435"}
)
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]+")
_CLUSTER = re.compile(rf".[{_MARKS}]*", re.DOTALL)
_WORD = re.compile(rf"[{_UNSPACED_RANGES}][{_MARKS}]*|(?:(?![{_UNSPACED_RANGES}]){_CHAR})+")


def tokenize(text: str) -> list[str]:
    """Return the terms of a document in reading order, with repetitions."""
    return [term for piece in _pieces(text) for term in _cached_terms(piece, single=True)]


def tokenize_query(text: str) -> list[str]:
    """Return the distinct terms of a query in reading order, without the grammar of questions."""
    pieces = _pieces(text[:MAX_QUERY_CHARS])
    terms = list(dict.fromkeys(term for piece in pieces for term in _cached_terms(piece, single=False)))
    content_terms = [term for term in terms if term not in _QUESTION_TERMS]
    return content_terms or terms


def query_phrases(text: str) -> list[str]:
    """Return the pairs of neighbouring words of a query, in the form that `normalize` gives a text.

    Pairs with a word of a question's grammar are left out. Three or more characters of a script without
    spaces are a phrase by themselves.
    """
    pieces = _pieces(text[:MAX_QUERY_CHARS].casefold())
    runs = [piece for piece in pieces if len(piece) > len("ab") and _UNSPACED.fullmatch(piece)]
    pairs = [f"{a} {b}" for a, b in pairwise(pieces) if not {a, b} & QUESTION_WORDS]
    return list(dict.fromkeys(runs + pairs))[:_MAX_PHRASES]


def normalize(text: str) -> str:
    """Return a text without case and accents, as phrases are compared."""
    return _remove_accents(text).casefold()


def words(text: str) -> list[str]:
    """Return the words of a text as phrases are compared; of scripts without spaces, the characters."""
    return _WORD.findall(normalize(text))


def is_unspaced(word: str) -> bool:
    """Return whether a word that `words` has returned is a character of a script without spaces."""
    return _UNSPACED.match(word) is not None


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(_remove_accents(text))


def _remove_accents(text: str) -> str:
    text = text[:MAX_CHARS]
    if text.isascii() or not _NEEDS_NORMALISING.search(text):
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    without_marks = _POINTS.sub("", _ACCENTS.sub("", decomposed))
    return unicodedata.normalize("NFKC", without_marks)


def _cached_terms(piece: str, *, single: bool) -> tuple[str, ...]:
    if len(piece) > _MAX_CACHED_LENGTH:
        return _piece_terms.__wrapped__(piece, single=single)
    return _piece_terms(piece, single=single)


@lru_cache(_CACHED_PIECES)
def _piece_terms(piece: str, *, single: bool) -> tuple[str, ...]:
    if piece.isascii() and piece.isalpha():
        return tuple(_word_terms(piece))
    if _UNSPACED.search(piece):
        return tuple(_unspaced_terms(piece, single=single))
    if _SYMBOL.fullmatch(piece):
        return (piece,)
    return tuple(_compound_terms(piece))


def _word_terms(piece: str) -> list[str]:
    word = _term(piece)
    parts = _CAMEL_CASE.split(piece)
    return [word] if len(parts) == 1 else [*map(_term, parts), word]


def _unspaced_terms(piece: str, *, single: bool) -> list[str]:
    terms: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(piece):
        terms += tokenize(piece[end : run.start()])
        terms += _character_terms(run.group(), single=single)
        end = run.end()
    return terms + tokenize(piece[end:])


def _character_terms(run: str, *, single: bool) -> list[str]:
    clusters = _CLUSTER.findall(run.casefold())
    pairs = [a + b for a, b in pairwise(clusters)]
    return [*clusters, *pairs] if single and pairs else pairs or clusters


def _compound_terms(piece: str) -> list[str]:
    if _GROUPED.fullmatch(piece):
        return [piece.replace(",", "")]
    if "," in piece:
        return [term for part in piece.split(",") for term in _cached_terms(part, single=True)]
    word = _SUFFIX.sub(lambda ending: "nt" if ending.group()[0] == "n" else "", piece)
    parts = _PART.findall(word)
    if len(parts) == 1:
        return _part_terms(parts[0], word[len(parts[0]) :])
    whole = _joined_term(word.casefold().translate(_LETTERS))
    return [*(term for part in parts for term in _part_terms(part, "")), whole]


def _part_terms(part: str, ending: str) -> list[str]:
    if ending:  # "++" or "#"
        return [part.casefold() + ending]
    word = part.casefold().translate(_LETTERS)
    if ordinal := _ORDINAL.fullmatch(word):
        return [ordinal[1]]
    if unit := _UNIT.fullmatch(word):
        return [unit[1], unit[2], word]
    return _word_terms(part)


def _joined_term(joined: str) -> str:
    """Return a compound as one term: without its punctuation, unless it contains digits."""
    if any(c.isdigit() for c in joined):
        return joined[:_MAX_TERM_LENGTH]
    return _term("".join(_PART.findall(joined)))


def _term(word: str) -> str:
    term = word.casefold().translate(_LETTERS)[:_MAX_TERM_LENGTH]
    return sys.intern(stemmer.stem(term) if term.isascii() else term)


_QUESTION_TERMS = frozenset(map(_term, QUESTION_WORDS))
