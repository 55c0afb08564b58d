"""Replies of the stand-in models: a memory per sentence without small talk, and a vector for synonyms."""

import json
from dataclasses import dataclass

from tests.standins import vectors
from tests.standins.behaviours import Vectors
from tests.standins.wire import Call, Wire

CATEGORY = "project-context/rewritten"
_SMALL_TALK = "Hello"


def reply_by_sentence(call: Call) -> str:
    """Return the reply of an enrichment model: one memory per sentence that is no small talk."""
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    sentences = [sentence.strip(" .") for sentence in note.split(". ")]
    contents = [sentence for sentence in sentences if not sentence.startswith(_SMALL_TALK)]
    return json.dumps(
        [{"content": content, "category": CATEGORY, "tags": ["rewritten"]} for content in contents]
    )


@dataclass(frozen=True)
class SynonymVectors(Vectors):
    """Vectors of a model that treats `automobile` and `car` as the same word."""

    def embed(self, call: Call, wire: Wire) -> list[list[float]]:
        """Return one vector per text."""
        texts = [text.lower().replace("automobile", "car") for text in call.texts]
        return [vectors.embed(text, wire.dimension) for text in texts]
