"""What the stand-in for a judge answers: the labels of the data, or lies.

`oracle` answers by label, but for one claim in fifty, chosen by a hash. `liar` turns a third of the answers
round. `yes` supports all. What is in neither the data nor the calibration set is not said.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.truth.data import Dialogue, Json, TruthData
from shared.foundation import prompt_safety
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Verdict

Question = tuple[str, str | None]
"""A statement, and the earlier one that it ends, or None."""
_CLAIM = re.compile(
    rf"^Claim (\d+)\. Evidence:\n{prompt_safety.OPEN}\n(.*?)\n?{prompt_safety.CLOSE}\n"
    r"(?:No longer holds: (.*)\nNew: (.*)|Statement: (.*))$",
    re.MULTILINE | re.DOTALL,
)
_TURN_HEAD = re.compile(r"^\[[^\]]*\] [^:]*: ")


class Manner(StrEnum):
    """How the stand-in answers."""

    ORACLE = "oracle"
    YES = "yes"
    LIAR = "liar"


_ONE_IN = {Manner.ORACLE: 50, Manner.LIAR: 3}
"""One answer in so many is wrong."""


@dataclass(slots=True)
class JudgeUse:
    """Calls, claims and about how many tokens the judge was asked for, without its calibration."""

    calls: int = 0
    claims: int = 0
    tokens: int = 0


class Oracle:
    """Answers prompts about claims. It is asked by several threads at once."""

    def __init__(self, manner: Manner, data: TruthData, calibration: Iterable[LabelledClaim]) -> None:
        self._manner = manner
        calibration_labels = pair_labels(calibration)
        self._labels = labels_of(data) | calibration_labels
        self._calibration = set(calibration_labels)
        self._lock = threading.Lock()
        self.use = JudgeUse()

    def reply_to(self, prompt: str) -> str:
        """Return the verdicts on the claims of a user message."""
        claims = [_read(match) for match in _claim_matches(prompt)]
        reply = json.dumps({"verdicts": [self._verdict(*claim) for claim in claims]}, ensure_ascii=False)
        if not all(question in self._calibration for _, question, _ in claims):
            with self._lock:
                self.use.calls += 1
                self.use.claims += len(claims)
                self.use.tokens += (len(prompt) + len(reply)) // 4
        return reply

    def _verdict(self, number: int, question: Question, quote: str) -> Json:
        is_supported = self._labels.get(question, False)
        if self._manner is Manner.YES:
            is_supported = True
        elif question in self._labels and _hash(question) % _ONE_IN[self._manner] == 0:
            is_supported = not is_supported
        verdict = Verdict.SUPPORTED if is_supported else Verdict.NOT_SAID
        return {"claim": number, "quote": quote if is_supported else "", "verdict": verdict.value}


def _claim_matches(prompt: str) -> list[re.Match[str]]:
    """Return the claims. Each is matched alone: the evidence of one can't run into the next."""
    parts = re.split(r"\n\n(?=Claim \d+\. Evidence:\n)", prompt)
    return [match for part in parts if (match := _CLAIM.match(part))]


def _read(match: re.Match[str]) -> tuple[int, Question, str]:
    number, evidence, closes, new, statement = match.groups()
    # The turns before the last one may only explain it: a quote must stand in a source.
    last_turn = evidence.strip().rsplit("\n", 1)[-1]
    return int(number), (statement or new, closes), _TURN_HEAD.sub("", last_turn)


def _hash(question: Question) -> int:
    return int.from_bytes(hashlib.sha256(json.dumps(question).encode()).digest()[:8], "big")


def labels_of(data: TruthData) -> dict[Question, bool]:
    """Return whether each statement of the data is right. What a wrong fact closes, it closes wrongly."""
    labels: dict[Question, bool] = {}
    for dialogue in data.dialogues:
        labels |= _dialogue_labels(dialogue)
    for rewrite in data.rewrites:
        labels |= {_question(text): True for texts in rewrite.good for text in texts}
        labels |= {_question(text): False for texts in rewrite.bad for text in rewrite.wrong_texts(texts)}
    for merge in data.merges:
        labels |= {_question(merge.good): True} | {_question(text): False for text in merge.bad}
    return labels | pair_labels(data.pairs)


def _dialogue_labels(dialogue: Dialogue) -> dict[Question, bool]:
    labels: dict[Question, bool] = {}
    for fact in dialogue.facts:
        for closes in {None, fact.closes}:
            labels[_question(fact.text, closes)] = fact.why is None
    return labels


def pair_labels(pairs: Iterable[LabelledClaim]) -> dict[Question, bool]:
    """Return whether each claim of labelled pairs is supported."""
    return {
        _question(pair.claim.statement, pair.claim.closes): pair.verdict is Verdict.SUPPORTED
        for pair in pairs
    }


def _question(statement: str, closes: str | None = None) -> Question:
    shown_closes = None if closes is None else prompt_safety.single_line(closes)
    return prompt_safety.single_line(statement), shown_closes
