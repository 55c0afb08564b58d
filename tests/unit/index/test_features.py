"""Features are what their definitions say, however they are computed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shared.search.floor import Floor
from shared.search.ranking import features
from shared.search.ranking.candidate import Candidate, ScoredCandidate
from shared.search.ranking.query_analysis import analyze
from shared.search.ranking.rank import Ranking, rank
from shared.search.text.tokenizer import normalize

NOW = datetime(2024, 3, 15, 12, tzinfo=UTC)
_WORDS = st.sampled_from(["Ada", "likes", "green", "tea", "Café", "crème", "ﬁne", "two…", "İs", "\n", "12"])
_TEXTS = st.lists(_WORDS, max_size=8).map(" ".join)
_SCORES = st.none() | st.floats(0, 9)


@st.composite
def _candidates(draw: st.DrawFn) -> list[Candidate]:
    count = draw(st.integers(0, 12))
    return [
        Candidate(
            str(position),
            draw(_TEXTS),
            draw(_SCORES),
            draw(st.none() | st.floats(-1, 1)),
            session_id=draw(st.sampled_from([None, "s", "t"])),
            seq=draw(st.none() | st.integers(1, 15)),
        )
        for position in range(count)
    ]


def _nearest(
    candidates: Sequence[Candidate], matches: Sequence[float], seq: int, session: str | None
) -> float:
    """Return the best match around a turn, as the definition of the feature has it."""
    return max(
        (
            match * features.NEIGHBOUR_DECAY ** (abs(other.seq - seq) - 1)
            for other, match in zip(candidates, matches, strict=True)
            if other.session_id == session
            and other.seq is not None
            and 0 < abs(other.seq - seq) <= features.NEIGHBOUR_REACH
        ),
        default=0.0,
    )


@given(_candidates(), st.data())
def test_near_is_the_best_match_within_reach(candidates: list[Candidate], data: st.DataObject) -> None:
    matches = [data.draw(st.floats(0, 1)) for _ in candidates]
    expected = [
        0.0 if candidate.seq is None else _nearest(candidates, matches, candidate.seq, candidate.session_id)
        for candidate in candidates
    ]
    assert features.near(candidates, matches) == expected


@given(_candidates(), _TEXTS)
def test_a_phrase_counts_in_every_text_that_has_it(candidates: list[Candidate], query: str) -> None:
    cues = analyze(query)
    expected = [
        sum(phrase in normalize(candidate.text) for phrase in cues.phrases) / len(cues.phrases)
        if candidate.keyword and cues.phrases
        else 0.0
        for candidate in candidates
    ]
    assert features.phrase(candidates, cues) == expected


@given(_candidates(), st.integers(0, 12), st.integers(0, 12), _TEXTS, st.none() | st.floats(0, 1))
def test_neighbours_that_are_added_later_are_ranked_as_if_all_had_come_at_once(
    candidates: list[Candidate], first: int, limit: int, query: str, cosine: float | None
) -> None:
    floor = None if cosine is None else Floor(cosine, is_learnt=True)
    neighbours = [candidate._replace(keyword=None, cosine=None) for candidate in candidates[first:]]
    candidates = [*candidates[:first], *neighbours]
    ranking = Ranking(query, now=NOW, floor=floor)
    ranking.add(candidates[:first])
    assert _shown(ranking.best()) == _shown(rank(query, candidates[:first], now=NOW, floor=floor))
    ranking.add(neighbours)
    whole = _shown(rank(query, candidates, now=NOW, floor=floor))
    assert _shown(ranking.best()) == whole
    assert _shown(ranking.best(limit)) == whole[:limit]


def _shown(ranked: Sequence[ScoredCandidate]) -> list[tuple[str, float, int]]:
    return [(scored.id, scored.score, scored.position) for scored in ranked]
