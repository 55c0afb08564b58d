"""How many tokens a text costs: an estimate by one stated rule.

One token for every four bytes of UTF-8, rounded up, and four for each message's frame. English
comes out a little high; scripts of three bytes a letter come out near the truth, where a rule
by characters would be far too low.
"""

from collections.abc import Iterable, Mapping

_BYTES_PER_TOKEN = 4
_FRAME = 4


def of_text(text: str) -> int:
    """Estimate the tokens of a text."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def of_messages(messages: Iterable[Mapping[str, str]]) -> int:
    """Estimate the tokens of chat messages."""
    return sum(of_text(message["content"]) + _FRAME for message in messages)
