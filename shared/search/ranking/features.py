"""What speaks for a candidate, each feature in 0..1 and nothing below: they can only add.

- keyword: BM25 as a share of the best hit's
- dense: cosine, stretched over the cosines of this query: they lie close together, at a level that
  depends on the model, which is also why no fixed bound on them measures well
- near: the best match among the turns around it in its session, less for every turn in between:
  an answer stands beside its question, and often shares no word with it
- session: the best match in its session: what a conversation is about
- role: the question is about the asker ("my", "did I"), and the user said this
- name: the question names who said this
- date: how close it is to the dates that the question names
- time: the question asks when, and this has words of time
- number: the question asks how many, and this has a number
- phrase: share of the question's neighbouring words that stand side by side here too
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from shared.search.ranking.candidate import Candidate
from shared.search.ranking.fusion import keyword_shares
from shared.search.ranking.query_analysis import QueryCues
from shared.search.text.tokenizer import normalize

# What the dense channel found keeps a trace of it, however few were found.
_LEAST = 0.02
NEIGHBOUR_REACH = 6
NEIGHBOUR_DECAY = 0.7
# Cues are sought in the head of a text only (characters): long messages hold every cue somewhere.
_HEAD = 400
_PHRASES_WITHIN = 4000
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

_SHARES = [
    (step, NEIGHBOUR_DECAY ** (abs(step) - 1))
    for step in range(-NEIGHBOUR_REACH, NEIGHBOUR_REACH + 1)
    if step
]

Column = list[float]


def keyword(candidates: Sequence[Candidate]) -> Column:
    """Share of the best keyword score."""
    return keyword_shares(candidates)


def dense(candidates: Sequence[Candidate]) -> Column:
    """Cosines stretched to 0..1; what the dense channel did not return stands below its last."""
    known = [c.cosine for c in candidates if c.cosine is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    return [_stretched(c.cosine, low, high) for c in candidates]


def near(candidates: Sequence[Candidate], matches: Column) -> Column:
    """Best of `matches` within REACH turns of the same session, times FADING per turn in between."""
    places: defaultdict[str | None, dict[int, float]] = defaultdict(dict)
    for c, match in zip(candidates, matches, strict=True):
        if c.seq is not None:
            held = places[c.session_id]
            held[c.seq] = max(match, held.get(c.seq, 0.0))
    return [_near(c.seq, places[c.session_id]) for c in candidates]


def session(candidates: Sequence[Candidate], matches: Column) -> Column:
    """Best of `matches` in the candidate's session; its own outside of any."""
    best: defaultdict[str | None, float] = defaultdict(float)
    for c, match in zip(candidates, matches, strict=True):
        best[c.session_id] = max(match, best[c.session_id])
    return [
        best[c.session_id] if c.session_id else match for c, match in zip(candidates, matches, strict=True)
    ]


def role(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """1 for what the user said, if the question is about the asker."""
    return [float(question.is_about_asker and c.role == "user") for c in candidates]


def name(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """1 if the question names the speaker, by any part of the name."""
    return [float(_is_named(c.speaker, question)) for c in candidates]


def date(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """How close it is to the nearest period that the question names."""
    return [
        max((period.closeness(c.at) for period in question.periods), default=0.0) if c.at else 0.0
        for c in candidates
    ]


def time(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """1 for words of time, if the question asks when."""
    return [float(question.wants_time and bool(_TIME.search(c.text[:_HEAD]))) for c in candidates]


def number(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """1 for a number, if the question asks how many."""
    return [float(question.wants_number and bool(_NUMBER.search(c.text[:_HEAD]))) for c in candidates]


def phrase(candidates: Sequence[Candidate], question: QueryCues) -> Column:
    """Share of the question's phrases that the text holds; only keyword hits can hold one."""
    return [_held(question.phrases, c.text) if c.keyword and question.phrases else 0.0 for c in candidates]


def _stretched(cosine: float | None, low: float, high: float) -> float:
    if cosine is None:
        return 0.0
    return _LEAST + (1 - _LEAST) * (cosine - low) / (high - low) if high > low else 1.0


def _near(seq: int | None, places: dict[int, float]) -> float:
    if seq is None or len(places) < 2:  # alone in its session, as most are
        return 0.0
    return max(share * places.get(seq + step, 0.0) for step, share in _SHARES)


def _is_named(speaker: str | None, question: QueryCues) -> bool:
    return speaker is not None and not question.names.isdisjoint(speaker.casefold().split())


def _held(phrases: Sequence[str], text: str) -> float:
    plain = normalize(text[:_PHRASES_WITHIN])
    return sum(phrase in plain for phrase in phrases) / len(phrases)
