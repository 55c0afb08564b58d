"""A memory as evidence of what a model makes of it."""

from datetime import UTC

from shared.memory.longterm.memory import Memory
from shared.verification.claim import Evidence

NOTE = "note"
"""The speaker of a note, as the judge reads it."""
MEMORY = "memory"
"""The speaker of a memory that others were made of."""


def evidence_of_memory(memory: Memory, speaker: str, max_characters: int | None = None) -> Evidence:
    """Return a memory as evidence, of its day in UTC; of a text that is too long its beginning."""
    return Evidence(speaker, memory.at.astimezone(UTC).date().isoformat(), memory.content[:max_characters])


def labels_of(memory: Memory) -> list[str]:
    """Return what a model is shown of a memory beside its text: category, tags and values of the metadata."""
    return [memory.category or "", *memory.tags, *memory.metadata.values()]
