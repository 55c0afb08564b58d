"""Estimate how many tokens a text costs.

The rule is one token for every four bytes of UTF-8, rounded up, and four for the frame of each message.
The estimate is a little high for English and close for scripts of three bytes a letter. A rule by
characters would be far too low for those.
"""

from collections.abc import Iterable, Mapping

_BYTES_PER_TOKEN = 4
_TOKENS_PER_FRAME = 4


def of_text(text: str) -> int:
    """Return the estimated tokens of a text."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def of_messages(messages: Iterable[Mapping[str, str]]) -> int:
    """Return the estimated tokens of chat messages."""
    return sum(of_text(message["content"]) + _TOKENS_PER_FRAME for message in messages)
