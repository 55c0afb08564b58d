"""The labelled data: dialogues with right and wrong facts, rewritings, merges, and pairs for the judge alone.

The file is `{judge, dialogues, rewrites, merges}`. Each item belongs to one half, by a hash of its id: rules
are tuned on one half and shown on the other.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.truth import words
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Claim, Evidence, Verdict

Json = dict[str, Any]


class Half(StrEnum):
    """A half of the items, or both."""

    HOME = "home"
    ABROAD = "abroad"
    BOTH = "both"


def half_of(id_: str) -> Half:
    """Return the half of an item, by the parity of its id's SHA-256."""
    return Half.ABROAD if hashlib.sha256(id_.encode()).digest()[-1] % 2 else Half.HOME


@dataclass(frozen=True, slots=True)
class DialogueTurn:
    """A turn with its turn key: the session and its number there, from 1."""

    session: str
    seq: int
    date: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ProposedText:
    """A fact that the stand-in proposes: `why` says what is wrong with it, None that it is right.

    `closes` is the text of the earlier fact that it ends; `sources` are positions of turns in the dialogue.
    """

    text: str
    why: str | None
    closes: str | None
    sources: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The sessions of one user, and the facts that are proposed about them."""

    id: str
    lang: str
    turns: tuple[DialogueTurn, ...]
    facts: tuple[ProposedText, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A note, and lists of texts that say it rightly or wrongly."""

    id: str
    lang: str
    date: str
    note: str
    good: tuple[tuple[str, ...], ...]
    bad: tuple[tuple[str, ...], ...]

    def wrong_texts(self, texts: tuple[str, ...]) -> list[str]:
        """Return the texts that no right list has; of a list that only leaves something out, none."""
        right = {text for good in self.good for text in good}
        return [text for text in texts if text not in right]


@dataclass(frozen=True, slots=True)
class Merge:
    """Memories (text, day) that one text may replace, that text, and wrong ones."""

    id: str
    lang: str
    memories: tuple[tuple[str, str], ...]
    good: str
    bad: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TruthData:
    """All items of a file, or of one half of it."""

    pairs: tuple[LabelledClaim, ...]
    dialogues: tuple[Dialogue, ...]
    rewrites: tuple[Rewrite, ...]
    merges: tuple[Merge, ...]

    def only(self, parts: Collection[str]) -> "TruthData":
        """Return the data without the dialogues (`facts`), rewritings and merges that are not in `parts`."""
        return TruthData(
            self.pairs,
            self.dialogues if "facts" in parts else (),
            self.rewrites if "rewritings" in parts else (),
            self.merges if "merges" in parts else (),
        )


def read(path: Path, half: Half = Half.BOTH) -> TruthData:
    """Read the items of a half. Raises KeyError or ValueError for a file of another shape."""
    data = json.loads(path.read_text(encoding="utf-8"))

    def items(name: str) -> list[Json]:
        return [item for item in data[name] if half in (Half.BOTH, half_of(item["id"]))]

    return TruthData(
        tuple(map(_pair, items("judge"))),
        tuple(map(_dialogue, items("dialogues"))),
        tuple(map(_rewrite, items("rewrites"))),
        tuple(map(_merge, items("merges"))),
    )


def _pair(item: Json) -> LabelledClaim:
    evidence = tuple(Evidence(**turn) for turn in item["evidence"])
    claim = Claim(item["statement"], evidence, item["closes"])
    return LabelledClaim(item["id"], item["lang"], item["type"], claim, Verdict(item["verdict"]))


def _rewrite(item: Json) -> Rewrite:
    good, bad = (tuple(map(tuple, item[name])) for name in ("good", "bad"))
    return Rewrite(item["id"], item["lang"], item["date"], item["note"], good, bad)


def _merge(item: Json) -> Merge:
    memories = tuple((memory["text"], memory["date"]) for memory in item["memories"])
    return Merge(item["id"], item["lang"], memories, item["good"], tuple(item["bad"]))


def _dialogue(item: Json) -> Dialogue:
    turns = _turns(item["turns"])
    right = [
        ProposedText(fact["text"], None, _closed_text(fact, item), tuple(fact["supported_by"]))
        for fact in item["facts"]
    ]
    wrong = [
        ProposedText(bad["text"], bad["why"], _closed_text(bad, item), (_likest_turn(bad, item, turns),))
        for bad in item["bad"]
    ]
    return Dialogue(item["id"], item["lang"], turns, (*right, *wrong))


def _turns(items: list[Json]) -> tuple[DialogueTurn, ...]:
    counts: dict[str, int] = {}
    turns: list[DialogueTurn] = []
    for item in items:
        seq = counts[item["session"]] = counts.get(item["session"], 0) + 1
        turns.append(DialogueTurn(item["session"], seq, item["date"], item["role"], item["text"]))
    return tuple(turns)


def _closed_text(fact: Json, dialogue: Json) -> str | None:
    return None if fact["closes"] is None else str(dialogue["facts"][fact["closes"]]["text"])


def _likest_turn(bad: Json, dialogue: Json, turns: tuple[DialogueTurn, ...]) -> int:
    """Return the position of the user's turn that shares the most words with a wrong fact and its reason.

    Of equals it is the earliest. A wrong closing is proposed in a session after the one that says what it
    closes, because until then there is no memory to close; where there is no later session, in the same one.
    """
    positions = [position for position, turn in enumerate(turns) if turn.role == "user"]
    if bad["closes"] is not None:
        source_session = turns[max(dialogue["facts"][bad["closes"]]["supported_by"])].session
        last_position = max(position for position, turn in enumerate(turns) if turn.session == source_session)
        positions = [position for position in positions if position > last_position] or positions
    wanted = words.of(f"{bad['text']} {bad['why']}")
    return max(positions, key=lambda position: len(wanted & words.of(turns[position].text)))
