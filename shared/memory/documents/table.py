"""The tables of documents and of their chunks. All belong to the whole tenant, and to no agent or user.

Each upload of changed bytes is a version. Search finds the chunks of `searchable_version` alone, so one
update of the document's row replaces all chunks at once, when the index has the new ones. Without that row
nobody finds them, so it is deleted first, and of a long text the chunks afterwards.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR

from shared.foundation.content import Subject, content, names, names_collected, no_content
from shared.foundation.origin import Channel
from shared.infra.origin_columns import origin_columns
from shared.infra.postgres import metadata

document = Table(
    "document",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=names(Subject.DOCUMENT)),
    # The title that the uploader gave, and the one that the parser found.
    Column("title", Text, info=content()),
    Column("parsed_title", Text, info=content()),
    # Where it comes from, and from where the same bytes came besides.
    Column("source", Text, info=content()),
    Column("other_sources", ARRAY(Text), nullable=False, server_default=text("'{}'"), info=content()),
    Column("file_name", Text, nullable=False, info=content()),
    # Its source until that had the bytes of another document: it is found until that one is.
    Column("former_source", Text, info=content()),
    # What the uploader said that the file is, and what the parser found it to be.
    Column("declared_type", Text, info=content()),
    Column("media_type", Text, info=content()),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", Text, nullable=False, info=content()),
    # Of the file of the latest version, under which the file store has it.
    Column("file_id", Text, nullable=False, info=no_content("a random id")),
    Column("version", Integer, nullable=False, server_default=text("1")),
    Column("searchable_version", Integer),
    Column("state", Text, nullable=False, info=no_content("one of a fixed list")),
    Column("reason_code", Text, info=no_content("one of a fixed list")),
    Column("reason", Text, info=content()),
    # How the text of the latest version was taken and cut, once it is in `parsed_chunk`.
    Column("method", Text, info=no_content("a version and two numbers")),
    # Of the latest version: how many chunks it has, once it is parsed, and how many are stored.
    Column("chunk_count", Integer),
    Column("stored_chunks", Integer, nullable=False, server_default=text("0")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    Column("updated_at", DateTime(timezone=True), nullable=False, server_default=func.clock_timestamp()),
    *origin_columns(Channel.DOCUMENT),
    PrimaryKeyConstraint("tenant", "id"),
    CheckConstraint("source IS NOT NULL OR other_sources = '{}'", name="other_sources"),
    CheckConstraint("searchable_version <= version", name="searchable_version"),
    CheckConstraint("state <> 'ready' OR searchable_version = version", name="ready"),
    CheckConstraint("state <> 'failed' OR reason_code IS NOT NULL", name="failed"),
)

Index(
    "document_source_idx",
    document.c.tenant,
    document.c.source,
    unique=True,
    postgresql_where=document.c.source.is_not(None),
)
# Few have several sources, so those that have are looked through for one.
Index(
    "document_other_sources_idx",
    document.c.tenant,
    document.c.id,
    postgresql_where=document.c.other_sources != text("'{}'"),
)
Index(
    "document_former_source_idx",
    document.c.tenant,
    document.c.former_source,
    postgresql_where=document.c.former_source.is_not(None),
)
Index("document_sha256_idx", document.c.tenant, document.c.sha256)
Index("document_newest_idx", document.c.tenant, document.c.created_at.desc(), document.c.id)

document_chunk = Table(
    "document_chunk",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("id", Text, nullable=False, info=no_content("ids and numbers")),
    Column("document_id", Text, nullable=False, info=names_collected(Subject.DOCUMENT)),
    Column("version", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("content", Text, nullable=False, info=content()),
    Column("page", Integer),
    Column("line_from", Integer),
    Column("line_to", Integer),
    Column("search_terms", TSVECTOR, nullable=False, info=content()),
    PrimaryKeyConstraint("tenant", "id"),
)

# For what concerns one version: to switch to it, and to delete it.
Index(
    "document_chunk_position_idx",
    document_chunk.c.tenant,
    document_chunk.c.document_id,
    document_chunk.c.version,
    document_chunk.c.position,
    unique=True,
)
Index("document_chunk_search_terms_idx", document_chunk.c.search_terms, postgresql_using="gin")

# The text of a version that is parsed, until each chunk of it is stored: a file is read once.
parsed_chunk = Table(
    "parsed_chunk",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("document_id", Text, nullable=False, info=no_content("a random id")),
    Column("version", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("content", Text, nullable=False, info=content()),
    Column("page", Integer),
    Column("line_from", Integer),
    Column("line_to", Integer),
    PrimaryKeyConstraint("tenant", "document_id", "version", "position"),
    ForeignKeyConstraint(["tenant", "document_id"], ["document.tenant", "document.id"], ondelete="CASCADE"),
)
