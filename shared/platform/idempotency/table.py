"""The table of stored responses, by tenant and by a digest of the route and the key.

A route has ids in it, and a key is any word of a caller: they may name somebody who is erased, while a
repetition of the request must be refused for a day. So neither is stored.
"""

from sqlalchemy import Column, DateTime, Index, LargeBinary, Table, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.foundation.content import Subject, content, names_and_clears, no_content
from shared.infra.postgres import metadata

_NAMING = ("body", "record_ids", "user_id")

idempotent_response = Table(
    "idempotent_response",
    metadata,
    Column("tenant", Text, primary_key=True, info=no_content("the tenant")),
    Column("route", Text, primary_key=True, info=no_content("the name of the digest, not the route")),
    Column("key", Text, primary_key=True, info=no_content("a digest of the route and of the caller's key")),
    Column("request_digest", LargeBinary, nullable=False, info=no_content("a digest")),
    # NULL once the records that it repeats have been erased.
    Column("body", JSONB(none_as_null=True), info=content()),
    # Records whose text the body repeats: deleting one of them erases the body, and all that names somebody.
    Column(
        "record_ids",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        info=names_and_clears(
            *(Subject.MEMORY, Subject.SESSION, Subject.TURN, Subject.WITHDRAWN_TURN, Subject.LOG),
            *(Subject.PLAYBOOK, Subject.DOCUMENT, Subject.SKILL, Subject.ENTITY, Subject.TRIPLE),
            Subject.PROPOSAL,
            clears=_NAMING,
        ),
    ),
    Column("user_id", Text, info=names_and_clears(Subject.USER, clears=_NAMING)),
    # When the first of what the body shows from outside Postgres expires; NULL: nothing does.
    Column("expires_at", DateTime(timezone=True)),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now(), index=True),
)

Index("idempotent_response_record_ids_idx", idempotent_response.c.record_ids, postgresql_using="gin")
