"""The tables of files. A file of Postgres lies in parts, so that none is held in memory as a whole.

The row of a file in S3 is committed before the object is written and deleted after the object, so that no
object is without a row that says what is to be deleted.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

document_file = Table(
    "document_file",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("name", Text, nullable=False, info=no_content("a random id")),
    Column("size_bytes", BigInteger, nullable=False),
    Column("is_in_s3", Boolean, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("tenant", "name"),
)

document_file_part = Table(
    "document_file_part",
    metadata,
    Column("tenant", Text, nullable=False, info=no_content("the tenant")),
    Column("name", Text, nullable=False, info=no_content("a random id")),
    Column("position", Integer, nullable=False),
    Column(
        "content",
        LargeBinary,
        nullable=False,
        info=no_content("part of a document's file, which the removal deletes that its document leaves"),
    ),
    PrimaryKeyConstraint("tenant", "name", "position"),
    ForeignKeyConstraint(
        ["tenant", "name"], ["document_file.tenant", "document_file.name"], ondelete="CASCADE"
    ),
)
