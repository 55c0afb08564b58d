"""Answers of an embedding model: right ones, and every way in which they were seen to be wrong."""

import base64
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tests.standins import vectors
from tests.standins.replies import Usage
from tests.standins.wire import Call, Wire


@dataclass(frozen=True)
class Vectors:
    """Answer an embedding request; `dimension` is the request's, or the server's, unless set.

    Another `space` is a model that was silently exchanged: the same texts, other vectors.
    """

    dimension: int | None = None
    space: str = ""
    usage: Usage = "counted"

    def play(self, call: Call, wire: Wire) -> None:
        """Send the vectors."""
        wire.send(self.answer(call, self.embed(call, wire)))

    def embed(self, call: Call, wire: Wire) -> list[list[float]]:
        """Return one vector per text."""
        size = self.dimension or call.body.get("dimensions") or wire.dimension
        return [vectors.embed(text, size, self.space) for text in call.texts]

    def answer(self, call: Call, rows: list[list[float]]) -> dict[str, Any]:
        """Return OpenAI's shape around `rows`, in base64 when that was asked for."""
        coded = [_base64(row) for row in rows] if call.body.get("encoding_format") == "base64" else rows
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(coded)]
        answer: dict[str, Any] = {"object": "list", "data": data, "model": call.model}
        tokens = sum(len(text.split()) for text in call.texts)
        used = {"prompt_tokens": tokens, "total_tokens": tokens} if self.usage == "counted" else self.usage
        return answer if used is None else answer | {"usage": used}


@dataclass(frozen=True)
class WrongDimension:
    """Answer with vectors that are `by` longer (or shorter) than they should be."""

    by: int = 1

    def play(self, call: Call, wire: Wire) -> None:
        """Send them."""
        Vectors(wire.dimension + self.by).play(call, wire)


@dataclass(frozen=True)
class WrongCount:
    """Answer with `by` vectors more (or fewer) than texts."""

    by: int = -1

    def play(self, call: Call, wire: Wire) -> None:
        """Send too many or too few."""
        rows = Vectors().embed(call, wire)
        wire.send(Vectors().answer(call, (rows + rows[-1:] * max(self.by, 0))[: len(rows) + self.by]))


@dataclass(frozen=True)
class NotANumber:
    """Put `value` in the vector at `index`: "NaN", "Infinity", "-Infinity" or null."""

    value: Literal["NaN", "Infinity", "-Infinity"] | None = "NaN"
    index: int = 0

    def play(self, call: Call, wire: Wire) -> None:
        """Send the spoilt vector among good ones."""
        rows: list[list[Any]] = [*Vectors().embed(call, wire)]
        rows[self.index][0] = None if self.value is None else float(self.value)
        wire.send(Vectors().answer(call, rows))


@dataclass(frozen=True)
class ZeroVector:
    """Answer with zeros for the text at `index`."""

    index: int = 0

    def play(self, call: Call, wire: Wire) -> None:
        """Send the empty vector among good ones."""
        rows = Vectors().embed(call, wire)
        rows[self.index] = [0.0] * len(rows[self.index])
        wire.send(Vectors().answer(call, rows))


@dataclass(frozen=True)
class Shuffled:
    """Answer in reverse order with a true `index` on each: right, for who reads the index."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send them backwards."""
        answer = Vectors().answer(call, Vectors().embed(call, wire))
        wire.send(answer | {"data": answer["data"][::-1]})


@dataclass(frozen=True)
class RepeatedIndex:
    """Answer with `index` 0 on every vector, two at least: nobody can tell which is which."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send them all as the first, and a single one twice."""
        answer = Vectors().answer(call, Vectors().embed(call, wire))
        items = [item | {"index": 0} for item in answer["data"]]
        wire.send(answer | {"data": items if len(items) > 1 else items * 2})


def _base64(row: list[Any]) -> str:
    return base64.b64encode(np.array(row, "<f4").tobytes()).decode()
