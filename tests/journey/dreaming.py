"""Replies of the stand-in model to dream passes: merge memories per category, delete those of 'right now'."""

import json
import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter

from tests.standins.wire import Call

UNKNOWN_ID = "0123456789ab"
_LISTED_MEMORY = re.compile(r"^\d+\. \[ID:([0-9a-f]{12})\] category=(\S+) .*\n {3}(.*)$", re.MULTILINE)
_EMPTY = ("toDelete", "toSave", "toUpdate", "occurrences", "entities", "triples")
EMPTY_PLAN = json.dumps({name: [] for name in _EMPTY})


def reply_to_passes(otherwise: Callable[[Call], str]) -> Callable[[Call], str]:
    """Return a reply to the prompt of a pass. Other prompts are answered by `otherwise`."""

    def reply(call: Call) -> str:
        if memories := _LISTED_MEMORY.findall(call.prompt):
            return plan(memories)
        return otherwise(call) if call.prompt.rstrip().endswith("}") else EMPTY_PLAN

    return reply


def plan(memories: list[tuple[str, str, str]]) -> str:
    """Merge the memories of each category into the longest, and name an unknown id to delete."""
    ephemeral_ids = [id_ for id_, _, content in memories if "right now" in content]
    durable = sorted((memory for memory in memories if memory[0] not in ephemeral_ids), key=itemgetter(1))
    groups = [list(group) for _, group in groupby(durable, key=itemgetter(1))]
    merged = [
        {
            "content": max((content for _, _, content in group), key=len),
            "category": group[0][1],
            "tags": [],
            "sourceIds": [id_ for id_, _, _ in group],
        }
        for group in groups
        if len(group) > 1
    ]
    deletions = [{"id": id_, "reason": "ephemeral"} for id_ in [*ephemeral_ids, UNKNOWN_ID]]
    return json.dumps({"toDelete": deletions, "toSave": merged})
