"""What makes two texts the same fact: letters without case, words without their spacing."""

import hashlib
import hmac
from datetime import UTC, datetime


def normalize(text: str) -> str:
    """Return the text as it is compared: case folded, white space collapsed."""
    return " ".join(text.casefold().split())


def fingerprint(content: str, occurred_at: datetime | None) -> bytes:
    """Return the SHA-256 of a fact; the same words about another time are another fact."""
    when = occurred_at.astimezone(UTC).isoformat() if occurred_at else ""
    return hashlib.sha256(f"{normalize(content)}\x1f{when}".encode()).digest()


def tombstone_digest(secret: bytes, content: str) -> bytes:
    """Return the HMAC-SHA-256 by which a tenant remembers that it forgot a text, not the text."""
    return hmac.new(secret, normalize(content).encode(), hashlib.sha256).digest()
