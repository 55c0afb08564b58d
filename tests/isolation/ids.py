"""The ids that requests name: those of existing records, and valid ones that no record has.

They are all that another tenant may learn or guess. None contains the secret, because a response may
repeat the ids of its request.
"""

import base64
import secrets
from dataclasses import dataclass, fields

import uuid_utils


@dataclass(frozen=True)
class Ids:
    """One value for each kind of id that a route takes."""

    memory: str
    archived: str
    content: str
    session: str
    patrol: str
    user: str
    agent: str
    working_key: str
    namespace: str
    cursor: str
    session_cursor: str
    idempotency_key: str
    run: str
    document: str
    text: str
    playbook: str
    entity: str
    triple: str

    def masked(self, text: str) -> str:
        """Return a text in which these ids are replaced by their field names."""
        values = [(getattr(self, field.name), field.name) for field in fields(self)]
        for value, name in sorted(values, key=lambda pair: len(pair[0]), reverse=True):
            text = text.replace(value, f"<{name}>")
        return text


def unused_ids() -> Ids:
    """Return valid ids that no record has."""
    suffix = secrets.token_hex(4)
    session = f"s-{suffix}"
    return Ids(
        memory=secrets.token_hex(6),
        archived=secrets.token_hex(6),
        content=f"The gate opens at seven, says {suffix}.",
        session=session,
        patrol=f"patrol-{suffix}",
        user=f"u-{suffix}",
        agent=f"a-{suffix}",
        working_key=f"session/{session}/letters",
        namespace=f"session/{session}",
        cursor=_cursor(secrets.token_hex(6)),
        session_cursor=_cursor(session),
        idempotency_key=f"order-{suffix}",
        run=str(uuid_utils.uuid7()),
        document=str(uuid_utils.uuid7()),
        text=str(uuid_utils.uuid7()),
        playbook=str(uuid_utils.uuid7()),
        entity=str(uuid_utils.uuid7()),
        triple=str(uuid_utils.uuid7()),
    )


def _cursor(row_id: str) -> str:
    return base64.urlsafe_b64encode(f"2026-01-01T00:00:00+00:00 {row_id}".encode()).decode()
