"""Keep prompts within a number of tokens: estimate texts, and split what is asked about into parts."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
_BYTES_PER_TOKEN = 3
"""Tokenizers need a token for about four bytes of English and for about three of other languages."""


def tokens_of(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few."""
    return len(text.encode()) // _BYTES_PER_TOKEN + 1


def fitting(lines: Iterable[str], max_tokens: int) -> list[str]:
    """Return the first of these lines that together have at most `max_tokens`."""
    kept_lines: list[str] = []
    for line in lines:
        max_tokens -= tokens_of(line)
        if max_tokens < 0:
            break
        kept_lines.append(line)
    return kept_lines


def last_fitting(items: Sequence[Item], tokens_of_item: Callable[[Item], int], max_tokens: int) -> list[Item]:
    """Return the last of these items that together have at most `max_tokens`, in their order."""
    kept_items: list[Item] = []
    for item in reversed(items):
        max_tokens -= tokens_of_item(item)
        if max_tokens < 0:
            break
        kept_items.insert(0, item)
    return kept_items


def shorten(text: str, max_tokens: int) -> str:
    """Return a text of at most `max_tokens`; of a longer one the beginning, with a mark."""
    if tokens_of(text) <= max_tokens:
        return text
    kept_bytes = max(0, max_tokens * _BYTES_PER_TOKEN - 20)
    return f"{text.encode()[:kept_bytes].decode(errors='ignore')} [shortened]"


def split(items: Sequence[Item], tokens_of_item: Callable[[Item], int], max_tokens: int) -> list[list[Item]]:
    """Split items, in their order, into parts of at most `max_tokens` each.

    An item over the limit is a part of its own.
    """
    parts: list[list[Item]] = []
    free_tokens = 0
    for item in items:
        item_tokens = tokens_of_item(item)
        if not parts or item_tokens > free_tokens:
            parts.append([])
            free_tokens = max_tokens
        parts[-1].append(item)
        free_tokens -= item_tokens
    return parts
