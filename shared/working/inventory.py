"""What an agent is told about a desk on every turn: names and times, never values."""

from shared.working import ttl
from shared.working.record import DeskListing


def line(listing: DeskListing) -> str:
    """Write `- session/abc/emails: expires in 4m32s, category: email, tags: inbox, unread`."""
    parts = [f"expires in {ttl.left(listing.remaining)}"]
    if listing.category:
        parts.append(f"category: {listing.category}")
    if listing.tags:
        parts.append(f"tags: {', '.join(listing.tags)}")
    return f"- {listing.key}: {', '.join(parts)}"
