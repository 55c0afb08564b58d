"""A scope's memory, made up: short facts whose words are as unevenly frequent as in real text.

The same seed makes the same facts. A word's frequency falls with its rank as Zipf's law says, so that
a query holds, as queries do, some words that thousands of entries have and some that a handful has.
"""

import itertools
import random
from typing import Any

_SYLLABLES = (
    "ba",
    "cor",
    "del",
    "fin",
    "gar",
    "hol",
    "jin",
    "kel",
    "lum",
    "mir",
    "nov",
    "pan",
    "ras",
    "sol",
    "tor",
    "vel",
)
_NAMES = (
    "Ada",
    "Boris",
    "Chen",
    "Dilnoza",
    "Emeka",
    "Farah",
    "Greta",
    "Hiro",
    "Ines",
    "Jonas",
    "Kavya",
    "Lior",
)
_VERBS = (
    "prefers",
    "keeps",
    "moved",
    "dislikes",
    "ordered",
    "reviewed",
    "wants",
    "asked for",
    "cancelled",
    "shipped",
)
_JOINTS = ("with", "for", "before", "because of", "instead of", "next to", "after", "without")
_CATEGORIES = (
    "user-preferences/travel",
    "user-preferences/food",
    "project-context/release",
    "active-plans/move",
    "general",
)
_VOCABULARY = 20_000
_TURNS_PER_TALK = 20


class Corpus:
    """An endless row of facts, and questions about them."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        words = ["".join(parts) for parts in itertools.product(_SYLLABLES, repeat=4)]
        self._draw.shuffle(words)
        self._words = words[:_VOCABULARY]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
        self._count = 0

    def memories(self, count: int) -> list[dict[str, Any]]:
        """Return the next facts as `POST /v1/memories` takes them."""
        return [self.memory() for _ in range(count)]

    def memory(self) -> dict[str, Any]:
        """Return the next fact: 10 to 20 words, said in a turn of an earlier conversation."""
        self._count += 1
        talk, seq = divmod(self._count, _TURNS_PER_TALK)
        name, verb, joint = self._draw.choice(_NAMES), self._draw.choice(_VERBS), self._draw.choice(_JOINTS)
        what, why = self._some(self._draw.randint(3, 8)), self._some(self._draw.randint(3, 8))
        return {
            "content": f"{name} {verb} the {what} {joint} {why} {self._draw.randint(1, 999)}.",
            "category": self._draw.choice(_CATEGORIES),
            "tags": self._drawn(self._draw.randint(0, 2)),
            "occurred_at": f"2025-{self._draw.randint(1, 12):02}-{self._draw.randint(1, 28):02}T09:00:00Z",
            "source": {"session_id": f"talk-{talk}", "seq": seq + 1, "speaker": name, "role": "user"},
        }

    def message(self) -> str:
        """Return what a user might ask: a name and a few words, common and rare."""
        name, verb = self._draw.choice(_NAMES), self._draw.choice(("say", "think", "tell us", "want"))
        return f"What did {name} {verb} about the {self._some(4)} in {self._some(2)}?"

    def _some(self, count: int) -> str:
        return " ".join(self._draw.choices(self._words, cum_weights=self._weights, k=count))

    def _drawn(self, count: int) -> list[str]:
        return list(dict.fromkeys(self._some(1) for _ in range(count)))
