"""What a search of memories returns for each."""

from dataclasses import dataclass
from typing import Literal

from shared.memory.longterm.memory import Memory
from shared.search.ranking.candidate import ScoredCandidate

TextOf = Literal["record", "evidence"]


@dataclass(frozen=True, slots=True)
class MemoryResult:
    """A memory with its scores.

    `evidence_text` is the text of what it was made from, if that matches the query clearly better.
    """

    memory: Memory
    scored: ScoredCandidate
    evidence_text: str | None = None

    @property
    def shown(self) -> Memory:
        """The memory with the text that is shown for it."""
        if self.evidence_text is None:
            return self.memory
        return self.memory.model_copy(update={"content": self.evidence_text})

    @property
    def text_of(self) -> TextOf:
        """Whose text is shown."""
        return "record" if self.evidence_text is None else "evidence"

    @classmethod
    def unscored(cls, memory: Memory) -> "MemoryResult":
        """Return a memory that no query ranked, with score 0."""
        return cls(memory, ScoredCandidate(memory.id, 0.0))
