"""Digests of a memory's content, which ignore case and white space."""

import hashlib
import hmac
from datetime import UTC, datetime


def normalize(text: str) -> str:
    """Return the text case-folded and with its white space collapsed: the form that is compared."""
    return " ".join(text.casefold().split())


def fingerprint(content: str, occurred_at: datetime | None) -> bytes:
    """Return the SHA-256 of normalised content and time: what makes two saves the same memory."""
    when = occurred_at.astimezone(UTC).isoformat() if occurred_at else ""
    return hashlib.sha256(f"{normalize(content)}\x1f{when}".encode()).digest()


def tombstone_digest(secret: bytes, content: str) -> bytes:
    """Return the HMAC-SHA-256 of normalised content, keyed with the tenant's secret.

    It tells that a text was deleted without telling which text.
    """
    return hmac.new(secret, normalize(content).encode(), hashlib.sha256).digest()
