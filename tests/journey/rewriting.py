"""What the stand-in knows: an entry of every sentence, nothing of small talk, and what a car is."""

import json
from dataclasses import dataclass

from tests.standins import vectors
from tests.standins.behaviours import Vectors
from tests.standins.wire import Call, Wire

CATEGORY = "project-context/rewritten"
_SMALL_TALK = "Hello"


def by_sentence(call: Call) -> str:
    """Return what a model would answer for the note in the call."""
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    sentences = [one.strip(" .") for one in note.split(". ")]
    kept = [one for one in sentences if not one.startswith(_SMALL_TALK)]
    return json.dumps([{"content": one, "category": CATEGORY, "tags": ["rewritten"]} for one in kept])


@dataclass(frozen=True)
class Understanding(Vectors):
    """Vectors of a model to which an automobile is a car."""

    def embed(self, call: Call, wire: Wire) -> list[list[float]]:
        """Return one vector per text."""
        meant = [text.lower().replace("automobile", "car") for text in call.texts]
        return [vectors.embed(text, wire.dimension) for text in meant]
