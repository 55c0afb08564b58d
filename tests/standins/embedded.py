"""Responses of an embedding model: correct ones, and all kinds of wrong ones that were observed."""

import base64
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tests.standins import vectors
from tests.standins.replies import Usage
from tests.standins.wire import Call, Wire


@dataclass(frozen=True)
class Vectors:
    """Respond with embeddings; without `dimension`, that of the request or of the server is used.

    Another `space` simulates another model behind the same name: the same texts have other vectors.
    """

    dimension: int | None = None
    space: str = ""
    usage: Usage = "counted"

    def play(self, call: Call, wire: Wire) -> None:
        """Send the vectors."""
        wire.send(self.response(call, self.embed(call, wire)))

    def embed(self, call: Call, wire: Wire) -> list[list[float]]:
        """Return one vector per text."""
        size = self.dimension or call.body.get("dimensions") or wire.dimension
        return [vectors.embed(text, size, self.space) for text in call.texts]

    def response(self, call: Call, rows: list[list[float]]) -> dict[str, Any]:
        """Return a response of OpenAI's shape with these vectors, in base64 if the request says so."""
        encoded = [_base64(row) for row in rows] if call.body.get("encoding_format") == "base64" else rows
        data = [
            {"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(encoded)
        ]
        response: dict[str, Any] = {"object": "list", "data": data, "model": call.model}
        tokens = sum(len(text.split()) for text in call.texts)
        counted = {"prompt_tokens": tokens, "total_tokens": tokens}
        reported = counted if self.usage == "counted" else self.usage
        return response if reported is None else response | {"usage": reported}


@dataclass(frozen=True)
class WrongDimension:
    """Respond with vectors that are `by` longer (or shorter) than they should be."""

    by: int = 1

    def play(self, call: Call, wire: Wire) -> None:
        """Send the vectors."""
        Vectors(wire.dimension + self.by).play(call, wire)


@dataclass(frozen=True)
class WrongCount:
    """Respond with `by` more (or fewer) vectors than texts."""

    by: int = -1

    def play(self, call: Call, wire: Wire) -> None:
        """Send too many or too few vectors."""
        rows = Vectors().embed(call, wire)
        wire.send(Vectors().response(call, (rows + rows[-1:] * max(self.by, 0))[: len(rows) + self.by]))


@dataclass(frozen=True)
class NotANumber:
    """Respond with `value` in the vector at `index`: "NaN", "Infinity", "-Infinity" or null."""

    value: Literal["NaN", "Infinity", "-Infinity"] | None = "NaN"
    index: int = 0

    def play(self, call: Call, wire: Wire) -> None:
        """Send the invalid vector among valid ones."""
        rows: list[list[Any]] = [*Vectors().embed(call, wire)]
        rows[self.index][0] = None if self.value is None else float(self.value)
        wire.send(Vectors().response(call, rows))


@dataclass(frozen=True)
class ZeroVector:
    """Respond with a vector of zeros for the text at `index`."""

    index: int = 0

    def play(self, call: Call, wire: Wire) -> None:
        """Send the zero vector among valid ones."""
        rows = Vectors().embed(call, wire)
        rows[self.index] = [0.0] * len(rows[self.index])
        wire.send(Vectors().response(call, rows))


@dataclass(frozen=True)
class Shuffled:
    """Respond in reverse order with the right `index` in each item, which is a correct response."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send the vectors in reverse order."""
        response = Vectors().response(call, Vectors().embed(call, wire))
        wire.send(response | {"data": response["data"][::-1]})


@dataclass(frozen=True)
class RepeatedIndex:
    """Respond with `index` 0 in every item, of which there are at least two."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send all items with the index 0, and a single item twice."""
        response = Vectors().response(call, Vectors().embed(call, wire))
        items = [item | {"index": 0} for item in response["data"]]
        wire.send(response | {"data": items if len(items) > 1 else items * 2})


def _base64(row: list[Any]) -> str:
    return base64.b64encode(np.array(row, "<f4").tobytes()).decode()
