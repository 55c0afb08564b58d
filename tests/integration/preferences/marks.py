"""What a model marks in the turns of a session."""

import json

from tests.standins.behaviours import Reply


def mark(session: str, content: str) -> Reply:
    """Return a reply that marks a strong wish in the first turn of a session."""
    occurrence = {
        "key": "wish",
        "content": content,
        "level": "very_irritated",
        "sessionId": session,
        "seqs": [1],
    }
    return Reply(json.dumps({"occurrences": [occurrence]}))
