"""Promoted playbooks as index documents: what is found is the user's query."""

from shared.foundation.stages import RecordKind
from shared.memory.playbooks.playbook import Playbook
from shared.search.index.filters import NO_USER, to_payload_time
from shared.search.index.points import IndexDocument
from shared.search.text import indexed_text

VERSION = 1
"""What is indexed of a playbook never changes, so its point has one version."""


def document(playbook: Playbook) -> IndexDocument:
    """Return the index document of a playbook."""
    filters = {
        "agent_id": playbook.agent_id,
        "user_id": playbook.user_id or NO_USER,
        "category_prefixes": [playbook.flow_dact],
        "created_at": to_payload_time(playbook.created_at),
    }
    return IndexDocument(
        playbook.tenant,
        RecordKind.PLAYBOOK,
        playbook.id,
        VERSION,
        indexed_text.keyword_text(playbook.user_query),
        embedding_text(playbook.user_query),
        filters,
        may_replace=False,
    )


def embedding_text(user_query: str) -> str:
    """Return the text that is embedded."""
    return indexed_text.embedding_text(user_query)
