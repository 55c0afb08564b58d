"""How the stand-in enriches: an entry of every sentence, and nothing of small talk."""

import json

from tests.standins.wire import Call

CATEGORY = "project-context/rewritten"
_SMALL_TALK = "Hello"


def by_sentence(call: Call) -> str:
    """Return what a model would answer for the note in the call."""
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    sentences = [one.strip(" .") for one in note.split(". ")]
    kept = [one for one in sentences if not one.startswith(_SMALL_TALK)]
    return json.dumps([{"content": one, "category": CATEGORY, "tags": ["rewritten"]} for one in kept])
