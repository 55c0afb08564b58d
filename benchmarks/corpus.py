"""Synthetic memories: short facts in which word frequencies are distributed as in real text.

The same seed gives the same facts. Word frequencies follow Zipf's law, so a query contains some words
that thousands of memories have, and some that only a few have.
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
    """An endless sequence of facts, and questions about them."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        words = ["".join(parts) for parts in itertools.product(_SYLLABLES, repeat=4)]
        self._draw.shuffle(words)
        self._words = words[:_VOCABULARY]
        self._weights = list(itertools.accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))
        self._count = 0

    def memories(self, count: int) -> list[dict[str, Any]]:
        """Return the next facts as bodies of `POST /v1/memories`."""
        return [self.memory() for _ in range(count)]

    def memory(self) -> dict[str, Any]:
        """Return the next fact: 10 to 20 words from a turn of an earlier conversation."""
        self._count += 1
        talk, seq = divmod(self._count, _TURNS_PER_TALK)
        name, verb, joint = self._draw.choice(_NAMES), self._draw.choice(_VERBS), self._draw.choice(_JOINTS)
        what, why = self._draw_words(self._draw.randint(3, 8)), self._draw_words(self._draw.randint(3, 8))
        return {
            "content": f"{name} {verb} the {what} {joint} {why} {self._draw.randint(1, 999)}.",
            "category": self._draw.choice(_CATEGORIES),
            "tags": self._draw_tags(self._draw.randint(0, 2)),
            "occurred_at": f"2025-{self._draw.randint(1, 12):02}-{self._draw.randint(1, 28):02}T09:00:00Z",
            "source": {"session_id": f"talk-{talk}", "seq": seq + 1, "speaker": name, "role": "user"},
        }

    def message(self) -> str:
        """Return a question of a user: a name and a few common and rare words."""
        name, verb = self._draw.choice(_NAMES), self._draw.choice(("say", "think", "tell us", "want"))
        return f"What did {name} {verb} about the {self._draw_words(4)} in {self._draw_words(2)}?"

    def _draw_words(self, count: int) -> str:
        return " ".join(self._draw.choices(self._words, cum_weights=self._weights, k=count))

    def _draw_tags(self, count: int) -> list[str]:
        return list(dict.fromkeys(self._draw_words(1) for _ in range(count)))
