"""What became of a proposed text, and counts of it."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from benchmarks.truth.data import Json
from shared.memory.longterm.fingerprint import normalize


class Fate(StrEnum):
    """What became of a text, a rewriting or a merge."""

    STORED = "stored"
    HELD = "held"
    REFUSED = "refused"


class Ending(StrEnum):
    """What became of a closing: the earlier memory ended, is contested, or stayed as it was."""

    CLOSED = "closed"
    CONTESTED = "contested"
    OPEN = "open"
    NOT_POSSIBLE = "not possible"  # the earlier fact is not stored, or was not shown
    NONE = "none"  # closes nothing


@dataclass(frozen=True, slots=True)
class Outcome:
    """The fate of one item. `part` is facts, rewritings or merges; `why` is None of a right one.

    `is_found` tells of a stored right rewriting whether a search for what it left out finds its memory.
    """

    part: str
    id: str
    lang: str
    text: str
    why: str | None
    fate: Fate
    ending: Ending = Ending.NONE
    codes: tuple[str, ...] = ()
    is_found: bool | None = None

    @property
    def is_good(self) -> bool:
        """Whether the item is right."""
        return self.why is None

    def as_json(self) -> Json:
        """Return all fields."""
        return asdict(self)


class Scope:
    """The live memories and the held proposals of a user, by their texts."""

    def __init__(self, memories: Iterable[Json], proposals: Iterable[Json]) -> None:
        self.memories = {normalize(memory["content"]): memory for memory in memories}
        self._held = {normalize(proposal["text"]) for proposal in proposals}

    def has(self, text: str) -> bool:
        """Tell whether a live memory has a text."""
        return normalize(text) in self.memories

    def fate(self, texts: Sequence[str]) -> Fate:
        """Return `stored` if all of the texts are stored, else `held` if one is held, else `refused`."""
        if all(map(self.has, texts)):
            return Fate.STORED
        is_held = any(normalize(text) in self._held for text in texts)
        return Fate.HELD if is_held else Fate.REFUSED

    def ending(self, text: str, closes: str | None) -> Ending:
        """Return what became of the memory of the text `closes`, as far as the memory of `text` ended it."""
        if closes is None:
            return Ending.NONE
        closed, successor = (self.memories.get(normalize(item)) for item in (closes, text))
        if closed is None:
            return Ending.NOT_POSSIBLE
        if successor is None:
            return Ending.OPEN
        if closed["valid_until"] and successor["id"] in closed["superseded_by"]:
            return Ending.CLOSED
        rivals = closed.get("contested_with") or ()
        return Ending.CONTESTED if successor["id"] in str(rivals) else Ending.OPEN
