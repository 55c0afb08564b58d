"""A model whose answers are cut off at a limit, and a long note of many facts."""

import json

from tests.standins.behaviours import Reply, usage
from tests.standins.wire import Behaviour, Call, Wire

FACTS = [f"Drawer {number} holds the tool T{number * 7}." for number in range(1, 261)]
NOTE = " ".join(FACTS)


def note_of(call: Call) -> str:
    """Return the text that a call is about."""
    return str(json.loads(call.body["messages"][-1]["content"])["content"])


class Limited(Behaviour):
    """A model that makes one memory of each sentence, and at most `limit` of them in one answer.

    `ending` tells how the answer ends at the limit: with the finish reason `length`, without any sign but
    the JSON that does not close, or with all tokens used.
    """

    def __init__(self, limit: int, ending: str) -> None:
        self.limit = limit
        self.ending = ending

    def play(self, call: Call, wire: Wire) -> None:
        """Answer, cut off at the limit."""
        sentences = [f"{sentence.strip(' .')}." for sentence in note_of(call).split(". ")]
        whole = json.dumps([{"content": sentence} for sentence in sentences])
        if len(sentences) <= self.limit:
            Reply(whole, usage=None).play(call, wire)
            return
        head = json.dumps([{"content": sentence} for sentence in sentences[: self.limit]])
        replies = {
            "length": Reply(head, "length", usage=None),
            "unclosed": Reply(head[:-1], usage=None),
            "no reason": Reply(head[:-1], None, usage=None),  # type: ignore[arg-type]
            "tokens": Reply(head, usage=usage(10, 500)),
        }
        replies[self.ending].play(call, wire)
