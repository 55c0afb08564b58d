"""The columns in which a table stores the origin of its records."""

from sqlalchemy import Column, Text

from shared.foundation.content import no_content
from shared.foundation.origin import UNKNOWN, Channel, Trust

NAMES = frozenset({"origin_channel", "origin_trust", "origin_key"})


def origin_columns(
    channel: Channel = UNKNOWN.channel, trust: Trust | None = UNKNOWN.trust
) -> tuple[Column[str], Column[str], Column[str]]:
    """Return the columns of an `Origin`.

    The defaults are for what was stored before, and for what processes of an earlier version insert. Without
    a default, a trust that is NULL follows from other columns of the row.
    """
    return (
        Column(
            "origin_channel",
            Text,
            nullable=False,
            server_default=channel.value,
            info=no_content("one of a fixed list"),
        ),
        Column(
            "origin_trust",
            Text,
            nullable=trust is None,
            server_default=None if trust is None else trust.value,
            info=no_content("one of a fixed list"),
        ),
        Column("origin_key", Text, info=no_content("the id of a key")),
    )
