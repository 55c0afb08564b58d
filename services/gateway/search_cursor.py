"""Cursors of searches with a query.

A ranking has no position that stays: every search ranks anew, and a save may change the order. So a cursor
holds the ids of what was shown, which are left out of the next page: nothing is shown twice, and whatever
matches and was not shown comes. It holds also a digest of the search that it continues.
"""

import base64
import binascii
import hashlib
from collections.abc import Sequence

from shared.foundation import errors
from shared.foundation.scope import Scope
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.search import SearchOptions

MAX_RESULTS = 1000
"""Where the pages of a search end. More than that is for a list, whose pages have no end."""
_DIGEST_BYTES = 16
_ID_BYTES = 6


def digest(scope: Scope, query: str, filters: MemoryFilters, options: SearchOptions) -> bytes:
    """Return what two requests share that ask for the same, page sizes aside."""
    search = repr((scope, query, filters, options.strategy, options.min_similarity))
    return hashlib.sha256(search.encode()).digest()[:_DIGEST_BYTES]


def encode(search_digest: bytes, shown_ids: Sequence[str]) -> str | None:
    """Return the cursor of the next page, or None at the end of the pages."""
    if len(shown_ids) >= MAX_RESULTS:
        return None
    return base64.urlsafe_b64encode(search_digest + bytes.fromhex("".join(shown_ids))).decode()


def decode(text: str | None, search_digest: bytes) -> list[str]:
    """Return the ids that were shown. Raise errors.Invalid for a cursor of another search, or of none."""
    if text is None:
        return []
    try:
        content = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        content = b""
    ids = content[_DIGEST_BYTES:]
    if content[:_DIGEST_BYTES] != search_digest or len(ids) % _ID_BYTES or len(ids) > MAX_RESULTS * _ID_BYTES:
        raise errors.Invalid("cursor", "is not one that this search has returned")
    return [ids[i : i + _ID_BYTES].hex() for i in range(0, len(ids), _ID_BYTES)]
