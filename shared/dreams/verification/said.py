"""What turns say, as the checks of facts compare it: each turn is read once for all facts that name it.

A turn may be as long as a document, and an answer may have a hundred facts of it.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC
from functools import cached_property

from shared.conversation.turns.turn import Turn
from shared.dreams.verification.fact_plan import TurnKey
from shared.foundation.roles import Role
from shared.language import named_days, negation, swaps
from shared.language.negation import SaidDenials
from shared.language.specifics import ParsedText
from shared.language.swaps import Clause
from shared.language.text_parser import parse_text


class _ReadTurn:
    """A text, of which each part is read when it is asked for first."""

    def __init__(self, content: str) -> None:
        self.content = content

    @cached_property
    def parsed(self) -> ParsedText:
        return parse_text(self.content)

    @cached_property
    def denials(self) -> SaidDenials:
        return SaidDenials.read(negation.without_answer(self.content))

    @cached_property
    def clauses(self) -> Sequence[Clause]:
        return swaps.read_clauses(self.content)


class SaidTurns:
    """Turns that were shown to a model, and what was read of them so far."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._read: dict[TurnKey, _ReadTurn] = {}
        self._names: dict[frozenset[str], ParsedText] = {}

    def specifics_of(self, sources: Sequence[Turn], more_text: str) -> ParsedText:
        """Return the specifics that a fact with these sources may have.

        Its numbers, days and times are theirs; its names may be of any user's turn of their sessions, of a
        speaker, or of `more_text`.
        """
        said = _joined(self._turn(turn).parsed for turn in sources)
        said_on = {turn.created_at.astimezone(UTC).date() for turn in sources}
        named_days.add_meant_days(said, said_on)
        named_days.add_near_years(said, said_on)
        for others in (self._names_in({turn.session_id for turn in sources}), parse_text(more_text)):
            _add_names(said, others)
        return said

    def denials_of(self, sources: Sequence[Turn]) -> SaidDenials:
        """Return what these turns deny."""
        return SaidDenials.join(self._turn(turn).denials for turn in sources)

    def clauses_of(self, sources: Sequence[Turn]) -> list[Clause]:
        """Return the clauses of these turns."""
        return [clause for turn in sources for clause in self._turn(turn).clauses]

    def _turn(self, turn: Turn) -> _ReadTurn:
        key = (turn.session_id, turn.seq)
        if key not in self._read:
            self._read[key] = _ReadTurn(turn.content)
        return self._read[key]

    def _names_in(self, session_ids: set[str]) -> ParsedText:
        key = frozenset(session_ids)
        if key not in self._names:
            turns = [turn for turn in self._turns if turn.session_id in session_ids]
            speakers = parse_text("\n".join(turn.speaker for turn in turns if turn.speaker))
            said = [self._turn(turn).parsed for turn in turns if turn.role is Role.USER]
            self._names[key] = _joined([*said, speakers])
        return self._names[key]


def _joined(texts: Iterable[ParsedText]) -> ParsedText:
    """Return what several texts contain together, without their specifics."""
    joined, parts = ParsedText(), list[str]()
    for text in texts:
        _add_names(joined, text)
        parts.append(text.text)
        joined.days |= text.days
        joined.times |= text.times
        for number, units in text.numbers.items():
            joined.numbers.setdefault(number, set()).update(units)
    joined.text = "\n".join(parts)
    return joined


def _add_names(said: ParsedText, others: ParsedText) -> None:
    said.words |= others.words
    said.capitals |= others.capitals
    said.acronyms |= others.acronyms
    said.stems |= others.stems
    said.pieces |= others.pieces
