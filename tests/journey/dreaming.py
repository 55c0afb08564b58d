"""What the stand-in dreams: entries about one thing are merged, what is so "right now" goes."""

import json
import re
from collections.abc import Callable
from itertools import groupby

from tests.standins.wire import Call

UNKNOWN = "0123456789ab"
_OFFERED = re.compile(r"^\d+\. \[ID:([0-9a-f]{12})\] category=(\S+) .*\n {3}(.*)$", re.MULTILINE)
NOTHING = json.dumps({"toDelete": [], "toSave": [], "toUpdate": [], "occurrences": []})


def by_night(otherwise: Callable[[Call], str]) -> Callable[[Call], str]:
    """Return what a model would answer a pass; what is no question of a pass goes to `otherwise`."""

    def answer(call: Call) -> str:
        if offered := _OFFERED.findall(call.prompt):
            return plan(offered)
        return otherwise(call) if call.prompt.rstrip().endswith("}") else NOTHING

    return answer


def plan(offered: list[tuple[str, str, str]]) -> str:
    """Merge the entries of each category that say the longest of them in part; name one that isn't there."""
    fleeting = [id_ for id_, _, content in offered if "right now" in content]
    lasting = sorted((one for one in offered if one[0] not in fleeting), key=lambda one: one[1])
    groups = [list(group) for _, group in groupby(lasting, key=lambda one: one[1])]
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
    gone = [{"id": one, "reason": "ephemeral"} for one in [*fleeting, UNKNOWN]]
    return json.dumps({"toDelete": gone, "toSave": merged})
