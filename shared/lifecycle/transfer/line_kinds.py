"""The kinds of lines in an export of a scope, and for each table what of its rows a line carries.

A line carries every column of its table, in a field of the column's name (a column `kind` is
`session_kind` or `observation_kind`: `kind` is that of the line). Not carried are the owner, who is the
scope that an import names; what is computed from other columns; and what `left_out` names, each with its
reason. So a new column is carried as soon as its table has it.

What belongs to the installation is no line at all: spend, budgets and prices, API keys, directives, the
business context and the consent to patterns (the tenant's, and no scope's: they have routes of their own),
history, earlier versions and tombstones, where skills were used, dream runs with their marks, proposals,
promotions, and everything that expires by itself (working memory, `tmp` stores).
"""

from shared.conversation.feedback.table import feedback_signal
from shared.conversation.observations.record_type import OBSERVATION
from shared.conversation.observations.table import observation
from shared.conversation.scratchpad.table import scratchpad_snippet
from shared.conversation.sessions.table import session
from shared.conversation.state.table import state_collection, state_key, transcript_entry
from shared.conversation.summary.table import session_summary
from shared.conversation.turns.table import turn
from shared.foundation import errors
from shared.foundation.stages import RecordKind
from shared.lifecycle.transfer import row_checks
from shared.lifecycle.transfer.row_kind import LineKind, Owner, RowKind
from shared.memory.pinned.table import pinned_text
from shared.memory.playbooks.table import playbook
from shared.memory.preferences.record_type import PREFERENCE
from shared.memory.preferences.table import preference
from shared.memory.skills.record_type import SKILL
from shared.memory.skills.table import skill, skill_file
from shared.platform.agents.table import agent, agent_file, agent_text

_SPEND = "the money was spent in the other installation"
_STATE_KEY = ("owner_kind", "owner_id")
ROW_KINDS: dict[LineKind, RowKind] = {
    kind.name: kind
    for kind in (
        RowKind(
            LineKind.AGENT,
            agent,
            Owner.SCOPE,
            ("id",),
            row_checks.check_agent,
            left_out={"id": "the agent is the one that the import names"},
        ),
        RowKind(LineKind.AGENT_TEXT, agent_text, Owner.AGENT, ("id",), row_checks.check_agent_text),
        RowKind(LineKind.AGENT_FILE, agent_file, Owner.AGENT, ("name",), row_checks.check_agent_file),
        RowKind(
            LineKind.PINNED_TEXT,
            pinned_text,
            Owner.SCOPE,
            ("name",),
            row_checks.check_pinned_text,
            left_out={"id": "drawn anew: the name tells which text is meant", "version": "of this database"},
        ),
        RowKind(
            LineKind.PREFERENCE,
            preference,
            Owner.SCOPE,
            ("key",),
            row_checks.check_preference,
            left_out={
                "id": "drawn anew: the key tells which preference is meant",
                "version": "of this database",
                "permission_granted_at": "only the user's key grants it: the user is asked anew",
            },
            is_kept=True,
            # All but the memory, which may not be there, or have another id.
            overwrites=frozenset(
                {
                    *("flow", "description", "slot", "value", "template", "related"),
                    *("origin", "requires_user_permission"),
                }
            ),
            record_kind=RecordKind.PREFERENCE,
            search_text=PREFERENCE.search_text,
        ),
        RowKind(
            LineKind.PLAYBOOK,
            playbook,
            Owner.SCOPE,
            ("id",),
            row_checks.check_playbook,
            left_out={
                "session_id": "what was learnt is moved, and not where",
                "first_seq": "of the session",
                "last_seq": "of the session",
                "words_digest": "follows from the query",
            },
            is_kept=True,
            record_kind=RecordKind.PLAYBOOK,
        ),
        RowKind(
            LineKind.SKILL_FILE,
            skill_file,
            Owner.SCOPE,
            ("sha256",),
            row_checks.check_skill_file,
            left_out={"id": "drawn anew: the digest tells which file is meant"},
            is_kept=True,
        ),
        RowKind(
            LineKind.SKILL,
            skill,
            Owner.SCOPE,
            ("name",),
            row_checks.check_skill,
            left_out={
                "id": "drawn anew: the name tells which skill is meant",
                "version": "of this database",
                "unsummarised_version": "of this database",
            },
            is_kept=True,
            record_kind=RecordKind.SKILL,
            search_text=SKILL.search_text,
        ),
        RowKind(
            LineKind.SESSION,
            session,
            Owner.SCOPE,
            ("id",),
            row_checks.check_session,
            left_out={
                "namespace": "follows from kind, id and name",
                "folded_id": "follows from the id",
                "turn_count": "counted when the turns are imported",
                "log_revision": "of what this installation has cached",
                "total_input_tokens": _SPEND,
                "total_output_tokens": _SPEND,
                "total_cached_tokens": _SPEND,
                "total_cost_usd": _SPEND,
                "unpriced_charges": _SPEND,
                "spend_updated_at": _SPEND,
            },
            overwrites=frozenset({"metadata"}),
        ),
        RowKind(
            LineKind.TURN,
            turn,
            Owner.SESSION,
            ("session_id", "seq"),
            row_checks.check_turn,
            left_out={
                "received_at": "when this installation received it: its retention counts from there",
                # A line might bring back the text of a memory that was deleted meanwhile.
                "recalled_lines": "what was shown with the turn; the next context recalls anew",
                "recalled_ids": "what was shown with the turn; the next context recalls anew",
                "version": "of the point in this index",
            },
            is_kept=True,
            json_texts=frozenset({"item"}),
            record_kind=RecordKind.TURN,
            search_text=row_checks.search_text_of_turn,
        ),
        RowKind(
            LineKind.SESSION_SUMMARY,
            session_summary,
            Owner.SESSION,
            ("session_id",),
            row_checks.check_session_summary,
            is_kept=True,
        ),
        RowKind(
            LineKind.OBSERVATION,
            observation,
            Owner.SESSION,
            ("id",),
            row_checks.check_observation,
            is_kept=True,
            record_kind=RecordKind.OBSERVATION,
            search_text=OBSERVATION.search_text,
        ),
        RowKind(
            LineKind.SCRATCHPAD_SNIPPET,
            scratchpad_snippet,
            Owner.SESSION,
            ("session_id", "slot"),
            row_checks.check_snippet,
            left_out={
                "revision": "of what this installation has cached",
                "playbook_id": "playbooks may get other ids",
            },
            is_kept=True,
        ),
        RowKind(
            LineKind.FEEDBACK_SIGNAL,
            feedback_signal,
            Owner.SESSION,
            ("id",),
            row_checks.check_feedback_signal,
            is_kept=True,
        ),
        RowKind(
            LineKind.STATE_KEY,
            state_key,
            Owner.STATE_STORE,
            (*_STATE_KEY, "key"),
            row_checks.check_state_key,
            json_texts=frozenset({"value"}),
            order=(*_STATE_KEY, "version"),
        ),
        RowKind(
            LineKind.STATE_COLLECTION,
            state_collection,
            Owner.STATE_STORE,
            (*_STATE_KEY, "label"),
            row_checks.check_state_collection,
            json_texts=frozenset({"value"}),
            left_out={"size_bytes": "follows from the value"},
        ),
        RowKind(
            LineKind.TRANSCRIPT_ENTRY,
            transcript_entry,
            Owner.STATE_STORE,
            (*_STATE_KEY, "version"),
            row_checks.check_transcript_entry,
            is_kept=True,
        ),
    )
}


def parse_kinds(text: str | None) -> list[LineKind]:
    """Return the kinds that a comma-separated list names, in the order of an export; all for None.

    Raises errors.Invalid for a name that is no kind.
    """
    if text is None:
        return list(LineKind)
    names = {name.strip() for name in text.split(",")}
    if not names <= {*LineKind}:
        raise errors.Invalid("kinds", f"must be some of {','.join(LineKind)}")
    return [kind for kind in LineKind if kind in names]
