"""What a bound key may do, restated as a table: by kind of record, kind of key, and whose the record is.

A cell says what the key may do with a record: `rw`, `r` (writing is a 403), `-` (it answers as if the
record did not exist), `r-` (reading; a write answers so) or `x` (a 403: the key may do nothing of the kind).
Nothing here is taken from the code.
"""

from typing import NamedTuple

AGENT, OTHER_AGENT, USER, OTHER_USER = "inn", "mill", "ada", "bob"


class Owner(NamedTuple):
    """Whose a record is; common records have no user."""

    agent_id: str
    user_id: str | None

    def scope(self) -> dict[str, str]:
        """Return the fields of a request that name this owner."""
        fields = {"agent_id": self.agent_id, "user_id": self.user_id}
        return {name: value for name, value in fields.items() if value is not None}


OWNERS = {
    "own": Owner(AGENT, USER),
    "common": Owner(AGENT, None),
    "of another user": Owner(AGENT, OTHER_USER),
    "of another agent": Owner(OTHER_AGENT, USER),
    "foreign": Owner(OTHER_AGENT, OTHER_USER),
}
KEYS: dict[str, dict[str, str]] = {
    "unbound": {},
    "agent": {"agent_id": AGENT},
    "user": {"user_id": USER},
    "agent and user": {"agent_id": AGENT, "user_id": USER},
    "namespace": {"namespace": "patrol/of-the-key"},
}

# The columns are those of OWNERS, in order.
_ROWS = {
    "memory": """
        unbound         rw  rw  rw  rw  rw
        agent           rw  rw  rw  -   -
        user            rw  r   -   rw  -
        agent and user  rw  r   -   -   -
        namespace       x   x   x   x   x
    """,
    # Sessions with all that hangs on them, dream runs, spend, and the working memory of sessions: another's
    # session is nobody else's business, nor is one without a user that of each user.
    "session": """
        unbound         rw  rw  rw  rw  rw
        agent           rw  rw  rw  -   -
        user            rw  -   -   rw  -
        agent and user  rw  -   -   -   -
        namespace       x   x   x   x   x
    """,
    "working memory of a session": """
        unbound         rw  rw  rw  rw  rw
        agent           rw  rw  rw  -   -
        user            rw  -   -   rw  -
        agent and user  rw  -   -   -   -
        namespace       r   r   r   r   r
    """,
    "working memory of a patrol": """
        unbound         rw  rw  rw  rw  rw
        agent           rw  rw  rw  -   -
        user            rw  r   -   rw  -
        agent and user  rw  r   -   -   -
        namespace       r   r   r   r   r
    """,
    # A write must not tell whether somebody else has opened it.
    "working memory that nobody opened": """
        unbound         rw  rw  rw  rw  rw
        agent           r-  r-  r-  r-  r-
        user            r-  r-  r-  r-  r-
        agent and user  r-  r-  r-  r-  r-
        namespace       r   r   r   r   r
    """,
    # Profiles, keys, texts and files. The request names the agent, so a refusal reveals nothing.
    "agent": """
        unbound         rw  rw  rw  rw  rw
        agent           rw  rw  rw  x   x
        user            x   x   x   x   x
        agent and user  x   x   x   x   x
        namespace       x   x   x   x   x
    """,
    # Directives, prices and the status: of the tenant as a whole.
    "tenant": """
        unbound         rw  rw  rw  rw  rw
        agent           r   r   r   r   r
        user            r   r   r   r   r
        agent and user  r   r   r   r   r
        namespace       x   x   x   x   x
    """,
    # The budget of the owner's agent.
    "budget": """
        unbound         rw  rw  rw  rw  rw
        agent           r   r   r   -   -
        user            -   -   -   -   -
        agent and user  -   -   -   -   -
        namespace       x   x   x   x   x
    """,
    # A whole user, of all agents; the first column is that of the key's user.
    "user": """
        unbound         rw  rw  rw  rw  rw
        agent           x   x   x   x   x
        user            rw  x   x   rw  x
        agent and user  x   x   x   x   x
        namespace       x   x   x   x   x
    """,
}


def _parse(rows: str) -> dict[tuple[str, str], str]:
    cells: dict[tuple[str, str], str] = {}
    for line in rows.strip().splitlines():
        *key, own, common, of_user, of_agent, foreign = line.split()
        row = (own, common, of_user, of_agent, foreign)
        cells |= {(" ".join(key), owner): cell for owner, cell in zip(OWNERS, row, strict=True)}
    return cells


READABLE = {"r", "r-", "rw"}
CELLS = {area: _parse(rows) for area, rows in _ROWS.items()}


def may(area: str, key: str, owner: str) -> str:
    """Return the cell for a kind of record, a kind of key and an owner."""
    return CELLS[area][key, owner]
