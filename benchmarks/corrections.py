"""Run `python -m benchmarks.corrections`: precision and recall of the detector of corrections, per language.

Without an option only the tuning half of the labelled turns is scored. The held-out half is kept for
the figures of a finished change, so its mistakes are never listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from benchmarks import table
from shared.conversation.feedback.detect import is_correction
from tests.unit.feedback.labelled_turns import Half, LabelledTurn, read_half


@dataclass(frozen=True, slots=True)
class Score:
    """How many turns were detected rightly, wrongly, and not at all."""

    right: int
    wrong: int
    missed: int

    @property
    def precision(self) -> float:
        """The share of the detected turns that are corrections; 1 if none was detected."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of the corrections that were detected; 1 if there are none."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0


def score(turns: Sequence[LabelledTurn]) -> Score:
    """Run the detector over labelled turns."""
    results = [(turn.corrects, detects(turn)) for turn in turns]
    return Score(
        right=results.count((True, True)),
        wrong=results.count((False, True)),
        missed=results.count((True, False)),
    )


def score_by_language(turns: Sequence[LabelledTurn]) -> dict[str, Score]:
    """Return the score of each language, and of all turns under `all`."""
    languages = dict.fromkeys(turn.language for turn in turns)
    scores = {
        language: score([turn for turn in turns if turn.language == language]) for language in languages
    }
    return scores | {"all": score(turns)}


def detects(turn: LabelledTurn) -> bool:
    """Tell whether the detector takes a labelled turn for a correction."""
    return is_correction(turn.text, turn.previous)


def main(
    *,
    half: Annotated[Half, typer.Option(help="Which half of the labelled turns to score.")] = Half.TUNING,
    mistakes: Annotated[bool, typer.Option(help="List the mistakes in the tuning half.")] = False,
) -> None:
    """Score the detector of corrections."""
    turns = read_half(half)
    scores = score_by_language(turns)
    head = (half.value, "turns", "right", "wrong", "missed", "precision", "recall")
    table.show(head, [_row(language, scores[language], turns) for language in scores])
    if mistakes and half is Half.TUNING:
        for turn in turns:
            if detects(turn) is not turn.corrects:
                print(f"{turn.language} {turn.label:<10} {turn.text!r} after {turn.previous!r}")


def _row(language: str, measured: Score, turns: Sequence[LabelledTurn]) -> list[str]:
    number = sum(language in {turn.language, "all"} for turn in turns)
    counts = (number, measured.right, measured.wrong, measured.missed)
    return [language, *map(str, counts), f"{measured.precision:.2f}", f"{measured.recall:.2f}"]


if __name__ == "__main__":
    typer.run(main)
