"""Who an agent is: a hash of its public key and its identity document, and of nothing else.

So it is the same wherever and whenever it is computed, in whatever tenant and under whatever id the
agent goes. The length of the key stands before it: without that, a byte that moves from the end of
the key to the beginning of the document would make another pair with the same hash. Only a root has
an identity; what an agent starts in its name, its sessions and subagents, has none of its own.
"""

import hashlib

_PURPOSE = b"loci agent identity 1\n"


def identity_of(public_key: str, document: str) -> str:
    """Return the identity, 64 hex digits: SHA-256 of purpose, length of the key, key, document.

    Texts as UTF-8; the length in bytes, as 8 bytes, the highest first.
    """
    key = public_key.encode()
    joined = _PURPOSE + len(key).to_bytes(8, "big") + key + document.encode()
    return hashlib.sha256(joined).hexdigest()
