"""The rules for each kind of line: those of the routes that write such records.

Each function takes the columns that a line names, of the right types, and returns them as they will be
stored. It raises errors.Invalid, which names the field and the rule.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from shared.conversation.feedback.feedback_signal import FeedbackSignalDraft
from shared.conversation.observations.observation import ObservationDraft
from shared.conversation.scratchpad import snippet as snippets
from shared.conversation.sessions.open import validate_id
from shared.conversation.sessions.session import SessionKind, validate_store_types
from shared.conversation.state import rules
from shared.conversation.state.types import OwnerKind, TranscriptDraft, time_to_version
from shared.conversation.summary.summary import MAX_SUMMARY
from shared.conversation.turns.turn import TurnDraft, searchable_text_of
from shared.conversation.values import collection_codec, json_codec
from shared.foundation import errors, validation
from shared.foundation.roles import Role
from shared.lifecycle.transfer import ndjson
from shared.memory.playbooks.playbook import PlaybookDraft, Reason, words_digest
from shared.memory.preferences import permission
from shared.memory.preferences.preference import (
    Condition,
    Effect,
    PreferenceBasis,
    PreferenceDraft,
    check_key,
)
from shared.memory.skills import skill as skills
from shared.memory.skills import skill_zip
from shared.platform.agents import agent as agents
from shared.platform.agents import profile
from shared.platform.spend.charge import MAX_MODEL

Fields = dict[str, Any]
D = TypeVar("D", bound=BaseModel)
_MAX_SEQ = 2_000_000_000
_MAX_VERSION = time_to_version(ndjson.LAST_MOMENT)
_MAX_PINNED = 4000
_MAX_TTL_SECONDS = 10 * 366 * 86_400


def _draft(model: type[D], fields: Mapping[str, Any]) -> D:
    """Return the draft that a route would make of these fields. Fields that it does not have are left out."""
    try:
        return model.model_validate({name: fields[name] for name in model.model_fields if name in fields})
    except ValidationError as error:
        raise ndjson.invalid_field(error) from None


def _stored(fields: Fields, draft: BaseModel) -> Fields:
    """Return the fields with the values of a validated draft."""
    return fields | {name: value for name, value in draft.model_dump().items() if name in fields}


def check_session(fields: Fields) -> Fields:
    """Check a session. One whose id is not valid here is refused; one that is in use gets another later."""
    validate_id(fields["id"])
    _require_member(SessionKind, fields, "kind")
    for name in ("name", "last_agent"):
        if fields.get(name) is not None:
            validation.check_text(fields[name], name, validation.MAX_IDENTIFIER_LENGTH)
    if not 1 <= (fields.get("ttl_seconds") or 1) <= _MAX_TTL_SECONDS:
        raise errors.Invalid("ttl_seconds", f"must be 1 to {_MAX_TTL_SECONDS}")
    _require_at_most(fields, "last_seq", _MAX_SEQ)
    _require_at_most(fields, "window_start", _MAX_SEQ)
    return _with_metadata(fields | {"store_types": validate_store_types(fields["store_types"])})


def check_turn(fields: Fields) -> Fields:
    """Check a turn."""
    if not 1 <= fields["seq"] <= _MAX_SEQ:
        raise errors.Invalid("seq", f"must be 1 to {_MAX_SEQ}")
    return _stored(_with_metadata(fields), _draft(TurnDraft, fields).validated())


def check_session_summary(fields: Fields) -> Fields:
    """Check the summary of a session."""
    validation.check_text(fields["content"], "content", MAX_SUMMARY)
    validation.check_text(fields["model"], "model", MAX_MODEL)
    _require_at_most(fields, "last_seq", _MAX_SEQ)
    if not 1 <= fields["first_seq"] <= fields["last_seq"]:
        raise errors.Invalid("first_seq", "must be 1 to last_seq")
    return fields


def check_observation(fields: Fields) -> Fields:
    """Check an observation."""
    checked = _with_metadata(fields)
    return _stored(checked, _draft(ObservationDraft, checked).validated()) | {
        "tags": list(validation.check_tags(fields["tags"])),
        "id": _check_id(fields["id"]),
    }


def check_snippet(fields: Fields) -> Fields:
    """Check a snippet of a scratchpad."""
    if not 1 <= fields["slot"] <= snippets.MAX_SNIPPETS:
        raise errors.Invalid("slot", f"must be 1 to {snippets.MAX_SNIPPETS}")
    if fields.get("count", 1) < 1:
        raise errors.Invalid("count", "must be at least 1")
    return fields | {"content": snippets.check_content(fields["content"]), "id": _check_id(fields["id"])}


def check_feedback_signal(fields: Fields) -> Fields:
    """Check a feedback signal."""
    draft = _draft(FeedbackSignalDraft, fields).validated()
    return _stored(fields, draft) | {"id": _check_id(fields["id"])}


def check_state_key(fields: Fields) -> Fields:
    """Check a key of a state store, whose value is valid JSON already."""
    _check_owner(fields)
    rules.check_name(fields["key"], "key", allow_blank=True)
    return fields | {"value": json_codec.dumps(json_codec.decode(orjson.loads(fields["value"])))}


def check_state_collection(fields: Fields) -> Fields:
    """Check a collection, whose value is valid JSON already, with binary data beside it."""
    _check_owner(fields)
    rules.check_name(fields["label"], "label", allow_blank=False)
    decoded = collection_codec.decode_collection(
        fields["type"], orjson.loads(fields["value"]), fields.get("data")
    )
    value, data = collection_codec.dump_parts(decoded)
    return fields | {"value": value, "data": data, "size_bytes": collection_codec.size_of(value, data)}


def check_transcript_entry(fields: Fields) -> Fields:
    """Check an entry of a transcript."""
    _check_owner(fields)
    _require_member(Role, fields, "role")
    checked = _with_metadata(fields)
    TranscriptDraft(Role(fields["role"]), fields["content"], checked["metadata"]).validated()
    return checked


def check_agent(fields: Fields) -> Fields:
    """Check an agent's profile. Its identity must be that of its key and its document."""
    proof = agents.IdentityProof.parse(fields.get("public_key"), fields.get("document"))
    identity = None if proof is None else profile.identity_of(proof.public_key, proof.document)
    if fields.get("identity") != identity:
        raise errors.Invalid("identity", "must be that of public_key and document")
    if fields.get("store_types") is not None:
        fields = fields | {"store_types": validate_store_types(fields["store_types"])}
    return fields


def check_agent_text(fields: Fields) -> Fields:
    """Check a text of an agent."""
    checked = _with_metadata(fields)
    _draft(agents.TextDraft, checked).validated()
    return checked | {"id": _check_id(fields["id"])}


def check_agent_file(fields: Fields) -> Fields:
    """Check a file of an agent."""
    agents.check_name(fields["name"])
    agents.check_content_type(fields["content_type"])
    if len(fields["content"]) > agents.MAX_FILE_BYTES:
        raise errors.TooLarge("content", f"must be at most {agents.MAX_FILE_BYTES} bytes")
    return fields


def check_pinned_text(fields: Fields) -> Fields:
    """Check a pinned text."""
    validation.check_text(fields["content"], "content", _MAX_PINNED)
    validation.check_identifier(fields["name"], "name")
    return fields


def check_preference(fields: Fields) -> Fields:
    """Check a preference: its rule, and that somebody has stored it."""
    if fields["origin"] not in {*PreferenceBasis} - {PreferenceBasis.DOMAIN}:
        raise errors.Invalid("origin", "must be that of a stored preference")
    check_key(fields["key"])
    condition, effect = _draft(Condition, fields), _draft(Effect, fields)
    draft = PreferenceDraft(condition=condition, effect=effect, related=tuple(fields["related"])).validated()
    must_ask = permission.is_about_sensitive(fields["key"], condition, effect)
    return fields | {
        "related": list(draft.related),
        "memory_id": None if fields["origin"] == PreferenceBasis.EXPLICIT else fields.get("memory_id"),
        "requires_user_permission": must_ask or bool(fields.get("requires_user_permission")),
    }


def check_playbook(fields: Fields) -> Fields:
    """Check a playbook. One that waits for its user won't hear of them: it comes without its session."""
    draft = _draft(PlaybookDraft, fields).validated()
    _require_member(Reason, fields, "reason")
    if draft.is_complete is (fields["reason"] == Reason.NOT_COMPLETED):
        raise errors.Invalid("reason", f"must be {Reason.NOT_COMPLETED} if and only if the outcome says so")
    is_waiting = fields["reason"] == Reason.WAITING
    return fields | {
        "id": _check_id(fields["id"]),
        "tool_calls": [call.model_dump() for call in draft.tool_calls],
        "reason": Reason.SESSION_ENDED if is_waiting else fields["reason"],
        "words_digest": words_digest(draft.user_query),
    }


def check_skill_file(fields: Fields) -> Fields:
    """Check a file of skills: its address is its digest."""
    if len(fields["content"]) > skill_zip.MAX_FILE_BYTES:
        raise errors.TooLarge("content", f"must be at most {skill_zip.MAX_FILE_BYTES} bytes")
    if fields["sha256"] != hashlib.sha256(fields["content"]).hexdigest():
        raise errors.Invalid("sha256", "must be the digest of the content")
    return fields


def check_skill(fields: Fields) -> Fields:
    """Check a skill. That its files are there is checked when it is stored."""
    skills.check_name(fields["name"])
    _require_member(skills.SkillWriter, fields, "origin")
    _require_member(skills.SummaryOrigin, fields, "summary_origin")
    draft = _draft(skills.SkillDraft, fields).validated()
    if draft.summary is None or draft.see_also is None:
        raise errors.Invalid("summary", "must be given, and see_also, too")
    skill_zip.check_files(draft.files or (), "files")
    return fields | {
        "see_also": list(draft.see_also),
        "front_matter": (draft.front_matter or skills.FrontMatter()).to_json(),
        "files": [file.model_dump() for file in draft.files or ()],
    }


def search_text_of_turn(fields: Fields) -> str:
    """Return what keyword search without the index matches of a turn."""
    return searchable_text_of(fields.get("speaker"), fields["content"])


def _check_owner(fields: Fields) -> None:
    if fields["owner_kind"] not in (OwnerKind.SESSION, OwnerKind.AGENT):
        raise errors.Invalid("owner_kind", f"must be {OwnerKind.SESSION} or {OwnerKind.AGENT}")
    if not 1 <= fields["version"] <= _MAX_VERSION:
        raise errors.Invalid("version", "must be a time in microseconds since 1970")


def _check_id(text: str) -> str:
    return validation.check_text(text, "id", validation.MAX_IDENTIFIER_LENGTH)


def _with_metadata(fields: Fields) -> Fields:
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise errors.Invalid("metadata", "must be an object of texts")
    return fields | {"metadata": validation.check_metadata(metadata)}


def _require_member(names: type[StrEnum], fields: Fields, field: str) -> None:
    if fields[field] not in {*names}:
        raise errors.Invalid(field, f"must be one of {', '.join(names)}")


def _require_at_most(fields: Fields, field: str, most: int) -> None:
    if not 0 <= fields.get(field, 0) <= most:
        raise errors.Invalid(field, f"must be 0 to {most}")
