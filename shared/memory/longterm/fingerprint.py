"""Digests of a memory's content, which ignore case and white space."""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Protocol


def normalize(text: str) -> str:
    """Return the text case-folded and with its white space collapsed: the form that is compared."""
    return " ".join(text.casefold().split())


def fingerprint(content: str, occurred_at: datetime | None) -> bytes:
    """Return the SHA-256 of normalised content and time: what makes two saves the same memory."""
    when = occurred_at.astimezone(UTC).isoformat() if occurred_at else ""
    return hashlib.sha256(f"{normalize(content)}\x1f{when}".encode()).digest()


class _Fingerprinted(Protocol):
    """A memory, or what becomes one."""

    @property
    def content(self) -> str: ...

    @property
    def occurred_at(self) -> datetime | None: ...


def fingerprint_of(memory: _Fingerprinted) -> bytes:
    """Return the fingerprint of a memory, a draft or a line of an import."""
    return fingerprint(memory.content, memory.occurred_at)


def tombstone_digest(secret: bytes, content: str) -> bytes:
    """Return the HMAC-SHA-256 of normalised content, keyed with the tenant's secret.

    It tells that a text was deleted without telling which text.
    """
    return hmac.new(secret, normalize(content).encode(), hashlib.sha256).digest()
