"""What a context needs of its session besides turns and memories, in one statement (two with skills).

It reads tables of several packages, because each statement costs a context more than what it reads.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text

from shared.conversation.sessions.session import Session
from shared.conversation.summary.summary import SessionSummary
from shared.conversation.turns import window_start
from shared.infra.transaction import Transaction
from shared.memory.pinned.pinned_text import CoreText
from shared.memory.skills import hit_queries
from shared.memory.skills.skill import CatalogueEntry

# A memory is shown with an older turn only as it was recalled then: one that was edited since leaves its
# line, and so does one that has expired or was archived without a successor.
_READ = text(
    """
    SELECT (SELECT context_options FROM agent WHERE tenant = :tenant AND id = :agent_id) AS options,
           (SELECT jsonb_agg(jsonb_build_array(p.id, p.name, p.content) ORDER BY p.user_id IS NOT NULL, p.id)
            FROM pinned_text p
            WHERE p.tenant = :tenant AND p.agent_id = :agent_id
                AND (p.user_id IS NULL OR p.user_id = CAST(:user_id AS text))) AS pinned,
           (SELECT jsonb_agg(jsonb_build_array(r.memory_id, r.content_version, r.seq))
            FROM recalled_memory r
            JOIN memory m ON m.tenant = r.tenant AND m.id = r.memory_id
            WHERE r.tenant = :tenant AND r.session_id = :session_id AND r.seq >= :start
                AND m.content_version = r.content_version
                AND (m.expires_at IS NULL OR m.expires_at > now())
                AND (m.archived_at IS NULL OR cardinality(m.superseded_by) > 0)) AS recalled,
           EXISTS (SELECT FROM skill
                   WHERE tenant = :tenant AND agent_id = :agent_id
                       AND (user_id IS NULL OR user_id = CAST(:user_id AS text))) AS has_skills,
           EXISTS (SELECT FROM graph_entity
                   WHERE tenant = :tenant AND agent_id = :agent_id) AS has_entities,
           s.session_id, s.content, s.first_seq, s.last_seq, s.model,
           EXISTS (SELECT FROM turn t
                   WHERE t.tenant = :tenant AND t.session_id = :session_id
                       AND t.seq > coalesce(s.last_seq, 0) AND t.seq < :start) AS has_unsummarized,
           (SELECT max(revision) FROM scratchpad_snippet
            WHERE tenant = :tenant AND session_id = :session_id) AS scratchpad_revision
    FROM (VALUES (1)) AS one
    LEFT JOIN session_summary s ON s.tenant = :tenant AND s.session_id = :session_id
    """
)


class SessionInputs(NamedTuple):
    """The pinned texts in their order, the options of the agent, and what the session was shown before.

    `recalled_before` maps a memory's id to (content version, seq of the turn) of its last recall within the
    window. `has_unsummarized_turns` tells that turns before the window are not in `summary`, `has_entities`
    that the agent has any entity, perhaps another user's. `skills` are those in force, by name.
    `scratchpad_revision` tells which cached copy of the scratchpad is current; None: it is empty.
    """

    core_texts: list[CoreText]
    options: Mapping[str, Any]
    recalled_before: dict[str, tuple[int, int]]
    summary: SessionSummary | None
    has_unsummarized_turns: bool
    has_entities: bool
    scratchpad_revision: int | None
    skills: Sequence[CatalogueEntry]


async def read_session_inputs(tx: Transaction, session: Session) -> SessionInputs:
    """Read the pinned texts, the agent's options, the summary and the recalls that contexts still show."""
    values = {
        "tenant": session.tenant,
        "agent_id": session.agent_id,
        "user_id": session.user_id,
        "session_id": session.id,
        "start": window_start.replayed_from(session),
    }
    [row] = await tx.fetch(_READ, values)
    return SessionInputs(
        [CoreText(*texts) for texts in row["pinned"] or ()],
        row["options"] or {},
        {memory_id: (content_version, seq) for memory_id, content_version, seq in row["recalled"] or ()},
        None if row["session_id"] is None else SessionSummary.from_row(row),
        row["has_unsummarized"],
        row["has_entities"],
        row["scratchpad_revision"],
        await hit_queries.list_catalogue(tx, session.scope) if row["has_skills"] else (),
    )
