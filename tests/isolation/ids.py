"""The names by which a tenant's things are asked for: those that are there, and such as nobody has.

Everything that another tenant may come to know or guess. None of them holds the canary: an answer
may repeat what it was asked for.
"""

import base64
import secrets
from dataclasses import dataclass, fields

import uuid_utils


@dataclass(frozen=True)
class Ids:
    """One value for everything that a route can be given."""

    memory: str
    archived: str
    content: str
    session: str
    patrol: str
    user: str
    agent: str
    desk_key: str
    namespace: str
    cursor: str
    session_cursor: str
    request_key: str
    run: str
    text: str

    def masked(self, text: str) -> str:
        """Return a text with these values replaced by their names."""
        named = [(getattr(self, field.name), field.name) for field in fields(self)]
        for value, name in sorted(named, key=lambda pair: len(pair[0]), reverse=True):
            text = text.replace(value, f"<{name}>")
        return text


def made_up() -> Ids:
    """Return ids of the right form that name nothing."""
    mark = secrets.token_hex(4)
    session = f"s-{mark}"
    return Ids(
        memory=secrets.token_hex(6),
        archived=secrets.token_hex(6),
        content=f"The gate opens at seven, says {mark}.",
        session=session,
        patrol=f"patrol-{mark}",
        user=f"u-{mark}",
        agent=f"a-{mark}",
        desk_key=f"session/{session}/letters",
        namespace=f"session/{session}",
        cursor=_cursor(secrets.token_hex(6)),
        session_cursor=_cursor(session),
        request_key=f"order-{mark}",
        run=str(uuid_utils.uuid7()),
        text=str(uuid_utils.uuid7()),
    )


def _cursor(row_id: str) -> str:
    return base64.urlsafe_b64encode(f"2026-01-01T00:00:00+00:00 {row_id}".encode()).decode()
