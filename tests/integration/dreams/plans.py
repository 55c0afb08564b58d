"""Plans of a model for memories, and the memories that it was shown."""

import json
import re
from typing import Any

from tests.standins.behaviours import Reply
from tests.standins.wire import Call

NOTHING = Reply(json.dumps({"toDelete": [], "toSave": []}))


def shown_ids(call: Call) -> set[str]:
    """Return the ids of the memories that the model was shown in a call."""
    return set(re.findall(r"\[ID:([0-9a-f]{12})\]", call.prompt))


def merging(*groups: tuple[str, list[str]], **fields: Any) -> Reply:
    """Return a reply with replacements of these sources."""
    saves = [{"content": content, "sourceIds": ids, **fields} for content, ids in groups]
    return Reply(json.dumps({"toDelete": [], "toSave": saves}))
