"""Questions whose evidence is known, and how much of it a ranking brings back.

The unit is a turn of the conversation; a ranking is a list of turns, best first, each once.
"""

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BUDGETS = (2000, 6000)
"""Characters returned, within which gold is counted."""
_RESAMPLED = 1000


@dataclass(frozen=True, slots=True)
class DatasetTurn:
    """One turn: its id in the data set, and its place (session, number from 1) in the product."""

    id: str
    session: str
    seq: int
    at: str
    speaker: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and the ids of the turns that hold the answer."""

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
    """Conversations, and the kinds of questions that the main figure is the mean of."""

    name: str
    main: frozenset[str]
    conversations: list[Conversation]


def read(path: Path, limit: int | None = None) -> DataSet:
    """Read a data set; questions without known evidence are left out."""
    data = json.loads(path.read_text())
    conversations = [_conversation(one) for one in data["conversations"][:limit]]
    return DataSet(data["set"], frozenset(data["main_types"]), conversations)


def _conversation(data: dict[str, list[dict[str, str]]]) -> Conversation:
    counts: dict[str, int] = {}
    turns = []
    for turn in data["turns"]:
        # Named by its conversation, so that a foreign result can't be taken for one of ours.
        session = f"{data['id']}-{turn['session']}"
        seq = counts[session] = counts.get(session, 0) + 1
        fields = (turn["id"], session, seq, turn["time"], turn["speaker"], turn["role"], turn["text"])
        turns.append(DatasetTurn(*fields))
    asked = [Question(q["text"], q["type"], frozenset(q["gold"])) for q in data["questions"] if q["gold"]]
    return Conversation(str(data["id"]), turns, asked)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What came back for a question: turns in order, with the characters returned up to and with each."""

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
        "MRR": next((1 / place for place, hit in enumerate(hits, start=1) if hit), 0.0),
    } | {f"R {budget} chars": _within(hits, ranking.characters, budget) / len(gold) for budget in BUDGETS}


def _gain(hits: Sequence[bool]) -> float:
    return sum(1 / math.log2(place + 1) for place, hit in enumerate(hits, start=1) if hit)


def _within(hits: Sequence[bool], characters: Sequence[int], budget: int) -> int:
    return sum(hit for hit, used in zip(hits, characters, strict=True) if used <= budget)


def latest_first(found: Sequence[str], gold: frozenset[str], said: Sequence[str]) -> bool | None:
    """Tell whether the newest evidence is in the top 10 and above the older; None if there is but one.

    `said` are all turns in the order in which they were said.
    """
    newest = max(gold, key=said.index)
    top = list(found[:10])
    return None if len(gold) == 1 else newest in top and gold.isdisjoint(top[: top.index(newest)])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean over questions."""
    draw = random.Random(0)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(_RESAMPLED))
    return means[int(0.025 * _RESAMPLED)], means[int(0.975 * _RESAMPLED) - 1]
