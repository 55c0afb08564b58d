"""Import every table, so that the migrations can be compared with the code."""

import shared.conversation.feedback.table
import shared.conversation.observations.table
import shared.conversation.scratchpad.table
import shared.conversation.sessions.table
import shared.conversation.state.table
import shared.conversation.summary.table
import shared.conversation.turns.table
import shared.dreams.graph.table
import shared.dreams.promotion.table
import shared.dreams.runs.table
import shared.dreams.skill_proposals.table
import shared.jobs.table
import shared.lifecycle.table
import shared.memory.business_context.table
import shared.memory.documents.files.table
import shared.memory.documents.table
import shared.memory.graph.table
import shared.memory.longterm.table
import shared.memory.patterns.table
import shared.memory.pinned.table
import shared.memory.playbooks.table
import shared.memory.preferences.table
import shared.memory.proposals.table
import shared.memory.skills.table
import shared.platform.agents.table
import shared.platform.auth.table
import shared.platform.directives.table
import shared.platform.idempotency.table
import shared.platform.spend.table
import shared.search.index.table
import shared.verification.table  # noqa: F401
from shared.infra.postgres import metadata

__all__ = ["metadata"]
