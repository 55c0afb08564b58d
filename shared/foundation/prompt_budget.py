"""Keep prompts within a number of tokens: estimate texts, and take of a list what fits.

The estimate is one token for every three bytes of UTF-8. Tokenizers need about four bytes for a token of
English and about three for one of other languages, so it is rather too high than too low.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
_BYTES_PER_TOKEN = 3


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def take_fitting(items: Sequence[Item], text_of: Callable[[Item], str], max_tokens: int) -> list[Item]:
    """Return the first items whose texts together have at most `max_tokens`; the rest waits its turn.

    The first item is always taken: if it is too long by itself, it has to be split.
    """
    taken: list[Item] = []
    for item in items:
        max_tokens -= tokens_of(text_of(item))
        if taken and max_tokens < 0:
            break
        taken.append(item)
    return taken
