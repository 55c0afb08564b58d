"""Render working-memory entries for the context of a turn: names and times, never whole values."""

import math

from shared.memory.working.working_entry import WorkingEntryInfo


def inventory_line(listing: WorkingEntryInfo) -> str:
    """Write `- session/abc/emails: expires in 4m32s, category: email, tags: inbox, unread`."""
    parts = [f"expires in {format_ttl(listing.remaining)}"]
    if listing.category:
        parts.append(f"category: {listing.category}")
    if listing.tags:
        parts.append(f"tags: {', '.join(listing.tags)}")
    return f"- {listing.key}: {', '.join(parts)}"


MAX_PREVIEW_LENGTH = 120
# This part of a value fills a preview even if it has much white space. A value may have a megabyte.
_MAX_PREVIEWED_CHARS = 20 * MAX_PREVIEW_LENGTH


def preview(value: str) -> str:
    """Return at most 120 characters on one line; a cut ends in `…`."""
    start = value.lstrip()
    text = " ".join(start[:_MAX_PREVIEWED_CHARS].split())
    if len(text) > MAX_PREVIEW_LENGTH:
        return text[: MAX_PREVIEW_LENGTH - 1].rstrip() + "…"
    return text


_MINUTE = 60
_HOUR = 60 * _MINUTE


def format_ttl(seconds: float) -> str:
    """Write the remaining time, rounded up, so that a live entry never shows `0s`."""
    whole = max(0, math.ceil(seconds))
    if whole >= _HOUR:
        return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02}m"
    if whole >= _MINUTE:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02}s"
    return f"{whole}s"
