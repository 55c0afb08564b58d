"""The table of stored responses, by tenant, route and key."""

from sqlalchemy import Column, DateTime, Index, LargeBinary, Table, Text, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from shared.infra.postgres import metadata

idempotent_response = Table(
    "idempotent_response",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("request_digest", LargeBinary, nullable=False),
    # NULL once the records that it repeats have been erased.
    Column("body", JSONB(none_as_null=True)),
    # Records whose text the body repeats: deleting one of them erases the body.
    Column("record_ids", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    Column("user_id", Text),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now(), index=True),
)

Index("idempotent_response_record_ids_idx", idempotent_response.c.record_ids, postgresql_using="gin")
