"""Every table there is, gathered so that the migrations can be compared with the code."""

import shared.access.table
import shared.agents.table
import shared.conversation.table
import shared.directives.table
import shared.dreams.table
import shared.feedback.table
import shared.idempotency.table
import shared.index.table
import shared.longterm.table
import shared.observations.table
import shared.sessions.table
import shared.spend.table
import shared.stores.table
import shared.work.table  # noqa: F401
from shared.clients.postgres import metadata

__all__ = ["metadata"]
