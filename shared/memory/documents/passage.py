"""What a search for documents returns: a passage, and where it stands."""

from dataclasses import dataclass
from typing import Any

from shared.foundation.origin import Origin
from shared.memory.documents.document import OF_DOCUMENTS


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage with its score. `document_id` is None for a passage of the business context."""

    text: str
    score: float
    title: str
    document_id: str | None = None
    page: int | None = None
    line_from: int | None = None
    line_to: int | None = None
    origin: Origin = OF_DOCUMENTS

    def to_json(self) -> dict[str, Any]:
        """Return the passage as the API does."""
        names = ("text", "document_id", "title", "page", "line_from", "line_to", "score")
        return {name: getattr(self, name) for name in names} | {"origin": self.origin.model_dump(mode="json")}
