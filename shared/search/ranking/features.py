"""Compute the features of candidates. Each is in 0..1, so a feature can only add to a score.

- keyword: the BM25 score as a share of the best one
- dense: the cosine, scaled to the range of the cosines of this query. They lie close together, at a
  level that depends on the model; for the same reason no fixed minimum works well
- near: the best match among the turns around the candidate, reduced for every turn in between. An
  answer follows its question, and often has no word in common with it
- session: the best match in the candidate's session, that is, what the conversation is about
- role: the query is about the asker ("my", "did I"), and the user said this
- name: the query names the speaker
- date: how close the candidate is to the dates that the query names
- time: the query asks when, and the text has words of time
- number: the query asks how many, and the text has a number
- phrase: the share of the query's pairs of neighbouring words that the text has too
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from shared.search.ranking.candidate import Candidate
from shared.search.ranking.fusion import keyword_shares
from shared.search.ranking.query_analysis import QueryCues
from shared.search.text.tokenizer import normalize

# The lowest cosine still counts a little, because the dense channel found its candidate.
_MIN_DENSE = 0.02
NEIGHBOUR_REACH = 6
NEIGHBOUR_DECAY = 0.7
# Characters of a text in which cues are searched: a long message has every cue somewhere.
_CUE_CHARS = 400
_PHRASE_CHARS = 4000
_TEXT_END = "\x00"
"""No stored text and no phrase has it."""
_TIME = re.compile(
    r"\b(?:yesterday|to(?:day|night|morrow)|last|next|ago|since|recently|just|(?:week|month|year|day)s?"
    r"|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d)\b|\d{1,2}:\d\d",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|few|couple|once|twice|several)\b",
    re.IGNORECASE,
)

# By the distance in turns; a turn is no neighbour of itself.
_SHARES = [0.0, *(NEIGHBOUR_DECAY**between for between in range(NEIGHBOUR_REACH))]

Column = list[float]


def keyword(candidates: Sequence[Candidate]) -> Column:
    """Return the keyword scores as shares of the best one."""
    return keyword_shares(candidates)


def dense(candidates: Sequence[Candidate]) -> Column:
    """Return the cosines scaled to 0..1, and 0 for what the dense channel did not return."""
    cosines = [candidate.cosine for candidate in candidates if candidate.cosine is not None]
    if not cosines:
        return [0.0] * len(candidates)
    low, high = min(cosines), max(cosines)
    return [_scale_cosine(candidate.cosine, low, high) for candidate in candidates]


def near(candidates: Sequence[Candidate], matches: Column) -> Column:
    """Return the best of `matches` within NEIGHBOUR_REACH turns of the same session.

    A match is multiplied by NEIGHBOUR_DECAY for every turn in between.
    """
    matches_by_session: defaultdict[str | None, list[tuple[int, float]]] = defaultdict(list)
    for candidate, match in zip(candidates, matches, strict=True):
        if match and candidate.seq is not None:
            matches_by_session[candidate.session_id].append((candidate.seq, match))
    return [
        _best_nearby(candidate.seq, matches_by_session[candidate.session_id])
        if candidate.seq is not None
        else 0.0
        for candidate in candidates
    ]


def session(candidates: Sequence[Candidate], matches: Column) -> Column:
    """Return the best of `matches` in the candidate's session, or its own match if it has no session."""
    best: defaultdict[str | None, float] = defaultdict(float)
    for candidate, match in zip(candidates, matches, strict=True):
        if match:
            best[candidate.session_id] = max(match, best[candidate.session_id])
    return [
        best[candidate.session_id] if candidate.session_id else match
        for candidate, match in zip(candidates, matches, strict=True)
    ]


def role(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return 1 for what the user said, if the query is about the asker."""
    if not cues.is_about_asker:
        return [0.0] * len(candidates)
    return [float(candidate.role == "user") for candidate in candidates]


def name(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return 1 if the query has any part of the speaker's name."""
    speakers = {candidate.speaker for candidate in candidates}
    is_named = {speaker: float(_is_named(speaker, cues)) for speaker in speakers}
    return [is_named[candidate.speaker] for candidate in candidates]


def date(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return how close a candidate is to the nearest date range that the query names."""
    if not cues.date_ranges:
        return [0.0] * len(candidates)
    return [
        max(date_range.closeness(candidate.day) for date_range in cues.date_ranges) if candidate.day else 0.0
        for candidate in candidates
    ]


def time(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return 1 for a text with words of time, if the query asks when."""
    if not cues.wants_time:
        return [0.0] * len(candidates)
    return [float(bool(_TIME.search(candidate.text[:_CUE_CHARS]))) for candidate in candidates]


def number(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return 1 for a text with a number, if the query asks how many."""
    if not cues.wants_number:
        return [0.0] * len(candidates)
    return [float(bool(_NUMBER.search(candidate.text[:_CUE_CHARS]))) for candidate in candidates]


def phrase(candidates: Sequence[Candidate], cues: QueryCues) -> Column:
    """Return the share of the query's phrases that the text has; only keyword hits can have one."""
    if not cues.phrases:
        return [0.0] * len(candidates)
    texts = [candidate.text[:_PHRASE_CHARS] if candidate.keyword else "" for candidate in candidates]
    all_texts = _TEXT_END.join(texts)
    # ASCII alone can be normalised at once: next to others, some characters change that by themselves do not.
    texts = all_texts.casefold().split(_TEXT_END) if all_texts.isascii() else list(map(normalize, texts))
    all_texts = _TEXT_END.join(texts)
    found = [phrase for phrase in cues.phrases if phrase in all_texts]  # most are in no text
    if not found:
        return [0.0] * len(candidates)
    return [sum([phrase in text for phrase in found]) / len(cues.phrases) for text in texts]


def _scale_cosine(cosine: float | None, low: float, high: float) -> float:
    if cosine is None:
        return 0.0
    return _MIN_DENSE + (1 - _MIN_DENSE) * (cosine - low) / (high - low) if high > low else 1.0


def _best_nearby(seq: int, session_matches: Sequence[tuple[int, float]]) -> float:
    best = 0.0
    # There are fewer turns of a session among the candidates than turns within reach.
    for other, match in session_matches:
        distance = abs(other - seq)
        if distance <= NEIGHBOUR_REACH and _SHARES[distance] * match > best:
            best = _SHARES[distance] * match
    return best


def _is_named(speaker: str | None, cues: QueryCues) -> bool:
    return speaker is not None and not cues.names.isdisjoint(speaker.casefold().split())
