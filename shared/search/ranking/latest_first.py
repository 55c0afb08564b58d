"""Put the newer of two results that say different things about the same above the older one.

They do if they have the same key, if their wording is nearly identical (`near_identical`), or if they give
different values for what the question asks (`changed_value`). The newer one moves to just above the older
one; the others keep their order, and nothing is left out. A result that moved has the score of the one that
it stands above, so that scores fall with the rank. A question about the past is left alone: it may ask
for the older one.

The best MAX_COMPARED results are compared. In each of the two ways, only some of them are read word by word,
because that takes most of the time: MAX_READ_CHARS of the best that can be a pair by their first and last
words, so that many short versions of one statement are read, and MAX_READ that have words of the question and
a value.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from shared.search.ranking import changed_value, near_identical, statement_words
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.changed_value import Value
from shared.search.ranking.past_question import is_about_past
from shared.search.ranking.question import Question, read_question
from shared.search.ranking.statement import MAX_CHARS, Statement, read_statement, to_term

MAX_COMPARED = 50
MAX_READ = 16
MAX_READ_CHARS = MAX_READ * MAX_CHARS
_MIN_TERMS = 2
"""Terms of the question that a text must have to be read for its values."""
_BEGINNING_WORDS = 6
_FEW_WORDS = 5
_MIN_COMMON = 0.4
_PUNCTUATION = ".,;:!?\"'()\u00bf\u00a1\u3001\u3002\uff01\uff1f"
_SKIPPED = (
    statement_words.ARTICLES
    | statement_words.CHANGE_MARKS
    | statement_words.NEGATIONS
    | statement_words.AUXILIARIES
    | {""}
)
_SHORT = 3
"""Characters of a term up to which its last one belongs to its root, in "save" and "saving"."""
_ASSISTANT = "assistant"

_Pair = tuple[int, int]
"""Positions of two results."""


def put_latest_first(
    query: str,
    ranked: Sequence[ScoredCandidate],
    candidates: Sequence[Candidate],
    until: float | None = None,
) -> list[ScoredCandidate]:
    """Return the ranked candidates, with the newer of two that contradict each other above the older.

    `ScoredCandidate.position` is the position among `candidates`. What is true only after `until`, in seconds
    since 1970, is newer than nothing: it is not so yet, at the time that was asked about.
    """
    if len(ranked) < 2 or is_about_past(query):
        return list(ranked)
    compared = [candidates[scored.position] for scored in ranked[:MAX_COMPARED]]
    newer_than: defaultdict[int, list[int]] = defaultdict(list)
    for older, newer in sorted(set(_find_pairs(read_question(query), compared))):
        if until is None or (compared[newer].since or 0.0) <= until:
            newer_than[older].append(newer)
    return _reorder(ranked, newer_than) if newer_than else list(ranked)


def _reorder(
    ranked: Sequence[ScoredCandidate], newer_than: Mapping[int, Sequence[int]]
) -> list[ScoredCandidate]:
    """Return all of `ranked`, each one after what is newer. To be newer is a strict order, so this ends."""
    ordered: list[ScoredCandidate] = []
    placed: set[int] = set()

    def place(position: int, scored: ScoredCandidate) -> None:
        placed.add(position)
        for newer in newer_than.get(position, ()):
            if newer not in placed:
                place(newer, ranked[newer]._replace(score=scored.score, latest_above=scored.id))
        ordered.append(scored)

    for position, scored in enumerate(ranked):
        if position not in placed:
            place(position, scored)
    return ordered


def _is_newer(candidate: Candidate, other: Candidate) -> bool:
    """Return whether a candidate says what was true later. In one session and at one time, the turns tell."""
    if candidate.since != other.since:
        return candidate.since is not None and other.since is not None and candidate.since > other.since
    if candidate.session_id is None or candidate.session_id != other.session_id:
        return False
    return candidate.seq is not None and other.seq is not None and candidate.seq > other.seq


def _find_pairs(question: Question, compared: Sequence[Candidate]) -> Iterator[_Pair]:
    """Yield pairs of which the newer one says something else than the older; some more than once."""
    yield from _with_one_key(compared)
    yield from _nearly_identical(question, compared)
    if question.asks_for_value:
        yield from _changed_values(question, compared)


def _in_time(pairs: Iterable[_Pair], compared: Sequence[Candidate]) -> Iterator[_Pair]:
    """Yield each of the pairs of which one is newer, the older one first."""
    for first, second in pairs:
        if _is_newer(compared[second], compared[first]):
            yield first, second
        elif _is_newer(compared[first], compared[second]):
            yield second, first


def _nearly_identical(question: Question, compared: Sequence[Candidate]) -> Iterator[_Pair]:
    """Yield the pairs that contradict each other in nearly the same words."""
    words = [_split(candidate.said) for candidate in compared]
    distinct = [frozenset(split) for split in words]
    pairs = {pair for pair in _pairs_by(map(_ends, words)) if _may_be_near(distinct, pair)}
    statements: dict[int, Statement] = {}
    chars_left = MAX_READ_CHARS
    for pair in _in_time(sorted(pairs, key=max), compared):
        unread = [position for position in pair if position not in statements]
        chars = sum(len(compared[position].said) for position in unread)
        if chars > chars_left:
            continue
        chars_left -= chars
        for position in unread:
            statements[position] = read_statement(compared[position].said)
        older, newer = (statements[position] for position in pair)
        if near_identical.contradict(question, older, newer) and (
            _have_one_speaker(pair, compared) or not (older.is_in_first_person or newer.is_in_first_person)
        ):
            yield pair


def _split(text: str) -> list[str]:
    """Return the words of a text, or none if it is too long to be compared as a whole."""
    return text.casefold().split() if len(text) <= MAX_CHARS else []


def _ends(words: Sequence[str]) -> list[Hashable]:
    """Return the first two words that say something, and the first and the last one.

    Statements that differ in one slot have either in common.
    """
    first: list[str] = []
    for word in words[:_BEGINNING_WORDS]:
        bare = word.strip(_PUNCTUATION)
        if bare not in _SKIPPED:
            first.append(bare)
            if len(first) == 2:
                break
    if not first:
        return []
    if not first[0].isascii():  # perhaps a script without spaces
        return [first[0][:2]]
    return [tuple(map(to_term, first)), (first[0], words[-1].strip(_PUNCTUATION), None)]


def _may_be_near(words: Sequence[frozenset[str]], pair: _Pair) -> bool:
    """Return whether two texts have enough words in common to be read. Of few, the endings tell little."""
    first, second = words[pair[0]], words[pair[1]]
    if min(len(first), len(second)) < _FEW_WORDS:
        return True
    return len(first & second) >= _MIN_COMMON * max(len(first), len(second))


def _changed_values(question: Question, compared: Sequence[Candidate]) -> Iterator[_Pair]:
    """Yield the pairs with different values of what the question asks.

    An assistant is left out: it repeats what it heard, and proposes what nobody decided.
    """
    roots = [term[:-1] if len(term) > _SHORT else term for term in question.terms]
    values: dict[int, list[Value]] = {}
    for position, candidate in enumerate(compared):
        text = candidate.said[:MAX_CHARS].casefold()
        if candidate.role == _ASSISTANT or sum(root in text for root in roots) < _MIN_TERMS:
            continue
        if found := changed_value.read_values(question, text):
            values[position] = found
        if len(values) == MAX_READ:
            break
    for older, newer in _in_time(combinations(values, 2), compared):
        if _have_one_speaker((older, newer), compared) and changed_value.has_changed(
            question, values[older], values[newer]
        ):
            yield older, newer


def _have_one_speaker(pair: _Pair, compared: Sequence[Candidate]) -> bool:
    first, second = (compared[position] for position in pair)
    return (first.speaker, first.role) == (second.speaker, second.role)


def _with_one_key(compared: Sequence[Candidate]) -> Iterator[_Pair]:
    """Yield the pairs with one key. What a user has is an exception to what is common, even to newer."""
    pairs = _pairs_by([candidate.key] if candidate.key else [] for candidate in compared)
    for older, newer in _in_time(pairs, compared):
        if compared[newer].owner is not None or compared[older].owner is None:
            yield older, newer


def _pairs_by(groups_of: Iterable[Iterable[Hashable]]) -> Iterator[_Pair]:
    """Yield the pairs of positions that have a group in common."""
    members: defaultdict[Hashable, list[int]] = defaultdict(list)
    for position, groups in enumerate(groups_of):
        for group in groups:
            members[group].append(position)
    for positions in members.values():
        yield from combinations(positions, 2)
