"""Questions with known evidence, and measures of how much of it a ranking contains.

The unit is a turn of the conversation. A ranking is a list of distinct turns, the best first.
"""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BUDGETS = (2000, 6000)
"""Numbers of returned characters within which evidence is counted."""
_RESAMPLED = 1000


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """One turn: its id in the data set, and its turn key (session, number from 1) in Loci."""

    id: str
    session: str
    seq: int
    at: str
    speaker: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the turns that contain its answer."""

    text: str
    kind: str
    gold: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One user's history and the questions about it."""

    id: str
    turns: list[DatasetTurn]
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Conversations, and the kinds of questions whose mean is the main figure."""

    name: str
    main: frozenset[str]
    conversations: list[Conversation]


def read(path: Path, limit: int | None = None) -> DataSet:
    """Read a data set; questions without known evidence are skipped."""
    data = json.loads(path.read_text())
    conversations = [_conversation(conversation) for conversation in data["conversations"][:limit]]
    return DataSet(data["set"], frozenset(data["main_types"]), conversations)


def _conversation(data: dict[str, list[dict[str, str]]]) -> Conversation:
    counts: dict[str, int] = {}
    turns = []
    for turn in data["turns"]:
        # The name contains the conversation's id, so that a result of another conversation is noticed.
        session = f"{data['id']}-{turn['session']}"
        seq = counts[session] = counts.get(session, 0) + 1
        fields = (turn["id"], session, seq, turn["time"], turn["speaker"], turn["role"], turn["text"])
        turns.append(DatasetTurn(*fields))
    questions = [Question(q["text"], q["type"], frozenset(q["gold"])) for q in data["questions"] if q["gold"]]
    return Conversation(str(data["id"]), turns, questions)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The results of a question: turns in order, with the number of characters up to and including each."""

    question: Question
    turns: list[str]
    characters: list[int]
    latest_first: bool | None
    foreign: int
    milliseconds: float


def measures(ranking: Ranking) -> dict[str, float]:
    """Return every measure of one ranking, in 0..1."""
    gold, turns = ranking.question.gold, ranking.turns
    hits = [turn in gold for turn in turns]
    return {
        "R@5": sum(hits[:5]) / len(gold),
        "R@10": sum(hits[:10]) / len(gold),
        "hit@5": float(any(hits[:5])),
        "all@10": float(sum(hits[:10]) == len(gold)),
        "nDCG@10": _gain(hits[:10]) / _gain([True] * min(len(gold), 10)),
        "MRR": next((1 / rank for rank, hit in enumerate(hits, start=1) if hit), 0.0),
    } | {f"R {budget} chars": _within(hits, ranking.characters, budget) / len(gold) for budget in BUDGETS}


def _gain(hits: Sequence[bool]) -> float:
    return sum(1 / math.log2(rank + 1) for rank, hit in enumerate(hits, start=1) if hit)


def _within(hits: Sequence[bool], characters: Sequence[int], budget: int) -> int:
    return sum(hit for hit, used in zip(hits, characters, strict=True) if used <= budget)


def latest_first(ranked: Sequence[str], gold: frozenset[str], spoken_order: Sequence[str]) -> bool | None:
    """Tell whether the newest evidence is in the top 10 and above the older; None if there is only one.

    `spoken_order` contains all turns in their original order.
    """
    newest = max(gold, key=spoken_order.index)
    top = list(ranked[:10])
    return None if len(gold) == 1 else newest in top and gold.isdisjoint(top[: top.index(newest)])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean over questions."""
    draw = random.Random(0)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(_RESAMPLED))
    return means[int(0.025 * _RESAMPLED)], means[int(0.975 * _RESAMPLED) - 1]
