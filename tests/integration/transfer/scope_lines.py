"""One line of each kind, with a value in every field that a line can carry."""

import base64
import hashlib
from typing import Any

from shared.platform.agents.profile import identity_of

T1, T2, T3 = "2026-01-02T03:04:05.000006+00:00", "2026-02-03T04:05:06+00:00", "2998-01-01T00:00:00+00:00"
VERSION = 1_767_323_045_000_006
SESSION = "talk/one"

AGENT = {
    "kind": "agent",
    "public_key": "a key",
    "document": "a document",
    "identity": identity_of("a key", "a document"),
    "store_types": ["tmp"],
    "created_at": T1,
    "updated_at": T2,
    "context_options": {"limit": 7},
    "mine_facts": False,
    "mine_common": True,
}
AGENT_TEXT = {
    "kind": "agent_text",
    "id": "01890000-0000-7000-8000-000000000001",
    "content": "Be brief.",
    "metadata": {"tone": "dry"},
    "created_at": T1,
}
AGENT_FILE = {
    "kind": "agent_file",
    "name": "notes/plan.bin",
    "content": base64.b64encode(bytes(range(256))).decode(),
    "content_type": "application/x-plan",
    "created_at": T1,
    "updated_at": T2,
}
PINNED_TEXT = {
    "origin_trust": "agent",
    "kind": "pinned_text",
    "name": "tone",
    "content": "Answer in verse. 詩で答える。",
    "created_at": T1,
    "updated_at": T2,
}
PREFERENCE = {
    "origin_trust": "agent",
    "kind": "preference",
    "key": "style/length",
    "flow": "report",
    "description": "The board meets. 会議。",
    "slot": "length",
    "value": {"pages": [1, 2]},
    "template": "In verse.",
    "related": ["tone"],
    "origin": "promotion",
    "memory_id": "aaaaaaaaaaaa",
    "requires_user_permission": True,
    "created_at": T1,
    "updated_at": T2,
}
PLAYBOOK = {
    "origin_trust": "agent",
    "kind": "playbook",
    "id": "01890000-0000-7000-8000-000000000005",
    "flow_dact": "book_flight",
    "slots": {"to": "LIS"},
    "tool_calls": [{"tool_id": "flights.search", "parameters": {"to": "LIS", "day": 5}}],
    "outcome": "success",
    "user_query": "Find me a flight to Lisbon.",
    "reason": "continued",
    "created_at": T1,
}
_FILE = b"flour: 500 g\n"
SKILL_FILE = {
    "kind": "skill_file",
    "sha256": hashlib.sha256(_FILE).hexdigest(),
    "content": base64.b64encode(_FILE).decode(),
    "created_at": T1,
}
SKILL = {
    "origin_trust": "agent",
    "kind": "skill",
    "name": "bake-bread",
    "summary": "How to bake bread. パン",
    "summary_origin": "caller",
    "content": "# Bread\n\nKnead the dough.",
    "see_also": ["mill-flour"],
    "front_matter": {"license": "MIT", "metadata": {"author": "Ada"}},
    "files": [{"path": "assets/flour.txt", "sha256": SKILL_FILE["sha256"], "size_bytes": len(_FILE)}],
    "origin": "import",
    "created_at": T1,
    "updated_at": T2,
    "last_used_at": T2,
}
SESSION_LINE = {
    "kind": "session",
    "id": SESSION,
    "session_kind": "session",
    "name": "first",
    "store_types": ["basic_session"],
    "last_agent": "planner",
    "created_at": T1,
    "ttl_seconds": 3600,
    "expires_at": T3,
    "last_seq": 7,
    "last_turn_at": T2,
    "metadata": {"channel": "phone"},
    "window_start": 2,
}
TURN = {
    "kind": "turn",
    "session_id": SESSION,
    "seq": 5,
    "role": "user",
    "speaker": "Ada",
    "content": "The lighthouse is green. Ünïcode 🚂",
    "created_at": T1,
    "metadata": {"lang": "en"},
    "item": {"type": "message", "parts": [1, -0.5, None, {"x": []}]},
    "edited_at": T2,
    "origin_trust": "user",
}
SESSION_SUMMARY = {
    "kind": "session_summary",
    "session_id": SESSION,
    "content": "Ada asked for the colour of the lighthouse.\nIt is green.",
    "first_seq": 1,
    "last_seq": 1,
    "model": "a-model",
    "created_at": T1,
    "updated_at": T2,
}
OBSERVATION = {
    "origin_trust": "agent",
    "kind": "observation",
    "id": "01890000-0000-7000-8000-000000000002",
    "session_id": SESSION,
    "observation_kind": "fact",
    "content": "Ada sails from Hamburg.",
    "data": {"home_port": "HAM"},
    "tags": ["travel"],
    "metadata": {"by": "tool"},
    "observed_at": T1,
    "created_at": T2,
}
SNIPPET = {
    "kind": "scratchpad_snippet",
    "session_id": SESSION,
    "slot": 3,
    "id": "5d0c1f7a9b3e",
    "content": "Ada wants one monthly invoice.",
    "count": 4,
    "promoted_at": T2,
    "origin_trust": "outside",
    "created_at": T1,
    "updated_at": T2,
}
FEEDBACK_SIGNAL = {
    "kind": "feedback_signal",
    "id": "01890000-0000-7000-8000-000000000003",
    "session_id": SESSION,
    "type": "Correction",
    "summary": "no, green",
    "detail": "It is green, not red.",
    "likelihood": 0.25,
    "previous": "It is red.",
    "first_seq": 3,
    "seq": 5,
    "previous_seq": 4,
    "created_at": T2,
}
STATE_KEY = {
    "kind": "state_key",
    "owner_kind": "session",
    "owner_id": SESSION,
    "key": "plan",
    "value": {"type": "float", "value": "NaN"},
    "version": VERSION,
}
AGENT_KEY = STATE_KEY | {"owner_kind": "agent", "owner_id": "a", "value": -0.0}
STATE_COLLECTION = {
    "kind": "state_collection",
    "owner_kind": "session",
    "owner_id": SESSION,
    "label": "rows",
    "type": "vec",
    "index": True,
    "value": {"shape": [1, 2], "labels": ["east"]},
    "data": base64.b64encode(b"\x00\x00\x80\x3f\x00\x00\x00\x00").decode(),
    "version": VERSION + 1,
}
TRANSCRIPT_ENTRY = {
    "kind": "transcript_entry",
    "owner_kind": "session",
    "owner_id": SESSION,
    "version": VERSION + 2,
    "role": "assistant",
    "content": "Noted.",
    "metadata": {"step": "1"},
}
MEMORY = {
    "kind": "memory",
    "id": "aaaaaaaaaaaa",
    "content": "Ada prefers trains.",
    "category": "travel",
    "tags": ["trains"],
    "metadata": {"colour": "red"},
    "importance": 0.75,
    "state": "final",
    "failure_reason": None,
    "occurred_at": T1,
    "sources": [{"session_id": SESSION, "seq": 5, "speaker": "Ada", "role": "user", "first_seq": 4}],
    "created_at": T1,
    "updated_at": T2,
    "last_seen_at": T2,
    "reinforcement_count": 3,
    "superseded_by": ["bbbbbbbbbbbb"],
    "derived_from": ["cccccccccccc"],
    "archived_at": None,
    "archive_reason": None,
    "archived_by": None,
    "namespace": "people/ada",
    "key": "travel — 旅",
    "valid_from": T1,
    "valid_until": T3,
    "expires_at": T3,
    "saved_without_source": True,
    "decided_by": "judge",
    "verdict": "supported",
    "judge_model": "judge-1",
    "contested_with": [],
    "origin": {"channel": "import", "trust": "user"},
}
GRAPH_ENTITY = {
    "kind": "graph_entity",
    "id": "01890000-0000-7000-8000-0000000000e1",
    "name": "Ada Lovelace",
    "type": "Person",
    "aliases": ["Countess of Lovelace", "愛達"],
    "metadata": {"born": "1815"},
    "is_derived": True,
    "is_kept": True,
    "created_at": T1,
    "updated_at": T2,
    "last_referenced_at": T2,
    "expired_at": T2,
    "reason": "not referenced",
}
GRAPH_TRIPLE = {
    "origin_trust": "agent",
    "kind": "graph_triple",
    "id": "01890000-0000-7000-8000-0000000000e2",
    "subject": "Ada Lovelace",
    "subject_type": "Person",
    "predicate": "wrote",
    "object": None,
    "object_type": None,
    "literal": "Note G",
    "fact": "Ada wrote Note G in 1843.",
    "confidence": 0.75,
    "valid_at": T1,
    "invalid_at": T2,
    "previous_invalid_at": T3,
    "created_at": T1,
    "expired_at": T2,
    "reason": "said by nobody else",
    "is_derived": True,
    "is_kept": True,
    "sources": [
        {"session_id": SESSION, "seq": 5, "memory_id": None},
        {"session_id": None, "seq": None, "memory_id": "0123456789ab"},
    ],
}
OF_AGENT: list[dict[str, Any]] = [AGENT, AGENT_TEXT, AGENT_FILE]
OF_SCOPE: list[dict[str, Any]] = [
    PINNED_TEXT,
    PLAYBOOK,
    SKILL_FILE,
    SKILL,
    SESSION_LINE,
    TURN,
    SESSION_SUMMARY,
    OBSERVATION,
    SNIPPET,
    FEEDBACK_SIGNAL,
    STATE_KEY,
    STATE_COLLECTION,
    TRANSCRIPT_ENTRY,
    MEMORY,
    PREFERENCE,
    GRAPH_ENTITY,
    GRAPH_TRIPLE,
]
ALL = [*OF_AGENT, *OF_SCOPE[:9], AGENT_KEY, *OF_SCOPE[9:]]
