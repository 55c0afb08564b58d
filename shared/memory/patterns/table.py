"""The table of consents. A tenant without a row shares no pattern and sees none.

A pattern is stored nowhere: the database function `shared_patterns` counts the playbooks of the tenants that
have a row here, whenever somebody asks. So a withdrawn consent counts from the next question on.
"""

from sqlalchemy import Column, DateTime, Table, Text, func

from shared.foundation.content import no_content
from shared.infra.postgres import metadata

pattern_consent = Table(
    "pattern_consent",
    metadata,
    Column("tenant", Text, primary_key=True, info=no_content("the tenant")),
    Column("actor", Text, nullable=False, info=no_content("the id of a key")),
    Column("created_at", DateTime(timezone=True), nullable=False, server_default=func.now()),
)
