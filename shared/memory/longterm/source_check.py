"""Check that a memory comes from where a caller says it does.

A key with a binding names only sessions and turns that it may read. Of another session it learns nothing,
not even whether there is one. An unbound key, which acts for the whole tenant, may also name sessions that
are kept elsewhere, and say who spoke where a stored turn doesn't. What a source says of a stored turn must
be so. What comes from a turn is trusted at most as far as the turn.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shared.conversation.sessions import readable_queries
from shared.conversation.turns import log_queries
from shared.conversation.turns.log_queries import Voice
from shared.conversation.turns.turn_range import TurnKey
from shared.foundation import errors
from shared.foundation.origin import Trust, trust_of_role
from shared.foundation.roles import Role, names_system
from shared.foundation.scope import Caller
from shared.infra.transaction import Transaction
from shared.memory.longterm.memory import MemoryDraft, SavedDraft, Source
from shared.platform.auth import rights


@dataclass(frozen=True, slots=True)
class NamedSources:
    """What is stored of the sessions and turns that sources name, as far as the caller may read it."""

    caller: Caller
    session_ids: frozenset[str]
    voices: Mapping[TurnKey, Voice]
    voices_of_sessions: Mapping[str, Collection[Voice]]

    @classmethod
    async def read(cls, tx: Transaction, caller: Caller, sources: Iterable[Source]) -> "NamedSources":
        """Read what these sources name."""
        named = list(sources)
        if not named:
            return cls(caller, frozenset(), {}, {})
        ids = await readable_queries.list_readable(tx, caller, {item.session_id for item in named})
        keys = {(item.session_id, item.seq) for item in named if item.seq is not None}
        voices = await log_queries.list_voices(tx, [key for key in keys if key[0] in ids])
        without_seq = {item.session_id for item in named if _names_voice_alone(item)}
        return cls(
            caller,
            ids,
            voices,
            await log_queries.list_voices_of(tx, ids & without_seq),
        )

    def fault(self, source: Source, field: str = "source") -> errors.Invalid | None:
        """Return what is wrong with a source, with the field below `field`; None if nothing is."""
        if self._is_bound and source.session_id not in self.session_ids:
            return errors.Invalid(f"{field}.session_id", "is no session that this key may read")
        if source.first_seq is not None and not 1 <= source.first_seq <= (source.seq or 0):
            return errors.Invalid(f"{field}.first_seq", "must be 1 to seq")
        if source.seq is None:
            return self._fault_of_session(source, field)
        voice = self.voices.get((source.session_id, source.seq))
        if voice is None:
            return errors.Invalid(f"{field}.seq", "is no turn of this session") if self._is_bound else None
        return self._fault_of_turn(source, voice, field)

    def trust_of(self, source: Source) -> Trust | None:
        """Return how far what a source says is trusted at most; None if it names no turn and no role."""
        voice = None if source.seq is None else self.voices.get((source.session_id, source.seq))
        if voice is not None:
            return voice.trust
        if source.role is None or source.role not in set(Role):
            return None
        return trust_of_role(Role(source.role), self.caller.trust)

    @property
    def _is_bound(self) -> bool:
        return not rights.is_unbound(self.caller)

    def _fault_of_turn(self, source: Source, voice: Voice, field: str) -> errors.Invalid | None:
        if source.role not in {None, voice.role}:
            return errors.Invalid(f"{field}.role", "is not that of the turn")
        may_name_speaker = voice.speaker is None and not self._is_bound
        if source.speaker not in {None, voice.speaker} and not may_name_speaker:
            return errors.Invalid(f"{field}.speaker", "is not that of the turn")
        return None

    def _fault_of_session(self, source: Source, field: str) -> errors.Invalid | None:
        """Return what is wrong with a source of a whole session: with a binding, a turn must say the same."""
        if source.role is not None and names_system(source.role):
            is_allowed = rights.may_speak_as(self.caller, Role.SYSTEM)
            return None if is_allowed else errors.Invalid(f"{field}.role", rights.SYSTEM_RULE)
        if not self._is_bound or not _names_voice_alone(source):
            return None
        voices = self.voices_of_sessions.get(source.session_id, ())
        alike = [voice for voice in voices if source.role in {None, voice.role}]
        if not alike:
            return errors.Invalid(f"{field}.role", "is that of no turn of the session")
        if all(source.speaker not in {None, voice.speaker} for voice in alike):
            return errors.Invalid(f"{field}.speaker", "is that of no turn of the session")
        return None


def _names_voice_alone(source: Source) -> bool:
    return source.seq is None and (source.role is not None or source.speaker is not None)


async def check(
    tx: Transaction, caller: Caller, drafts: Sequence[MemoryDraft]
) -> list[SavedDraft | errors.Invalid]:
    """Return each draft with its origin, or what is wrong with its source or the trust that it asks for."""
    sources = [draft.source for draft in drafts if draft.source is not None]
    named = await NamedSources.read(tx, caller, sources)
    return [_check_draft(named, draft) for draft in drafts]


def _check_draft(named: NamedSources, draft: MemoryDraft) -> SavedDraft | errors.Invalid:
    origin = named.caller.origin
    if draft.source is not None:
        fault = named.fault(draft.source)
        if fault is not None:
            return fault
        origin = origin.limited(named.trust_of(draft.source))
    try:
        return SavedDraft(draft, origin.lowered(draft.trust))
    except errors.Invalid as error:
        return error


async def require(tx: Transaction, caller: Caller, draft: MemoryDraft) -> SavedDraft:
    """Return a draft with its origin. Raise errors.Invalid, naming the field, if something is wrong."""
    [checked] = await check(tx, caller, [draft])
    if isinstance(checked, errors.Invalid):
        raise checked
    return checked
