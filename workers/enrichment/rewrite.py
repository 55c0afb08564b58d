"""Ask the model to rewrite a note, in smaller parts if its answer would be cut off.

The drafts of a note are complete or there are none. A part whose answer is cut off is halved and asked
again, up to MAX_HALVINGS times; what is still cut off raises errors.CutOffReply for the whole note.
"""

from dataclasses import dataclass

from shared.foundation import errors
from shared.infra.language_model import LanguageModel
from shared.memory.longterm.fingerprint import normalize
from shared.memory.longterm.memory import Memory, MemoryDraft
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from workers.enrichment import parse_reply, prompt
from workers.enrichment.note_part import NotePart

MAX_HALVINGS = 5


@dataclass(frozen=True, slots=True)
class NoteRewriter:
    """A raw memory, the model that rewrites it and the rules for it."""

    resources: Resources
    model: LanguageModel
    raw_memory: Memory
    system: str

    async def rewrite(self) -> list[MemoryDraft]:
        """Return the drafts of the note, one for each distinct content; empty if nothing in it is durable.

        Raises errors.CutOffReply if even small parts of the note are cut off, errors.InvalidModelReply if
        the second answer to one question is useless, too, and errors.OverBudget and errors.Unavailable as the
        model's client does.
        """
        drafts = await self._rewrite_part(NotePart(self.raw_memory.content), MAX_HALVINGS)
        distinct: dict[str, MemoryDraft] = {}
        for draft in drafts:
            distinct.setdefault(normalize(draft.content), draft)
        return list(distinct.values())

    async def _rewrite_part(self, part: NotePart, halvings_left: int) -> list[MemoryDraft]:
        try:
            return await self._ask_twice(part)
        except errors.CutOffReply:
            halves = part.halves() if halvings_left else None
            if halves is None:
                raise
        return [draft for half in halves for draft in await self._rewrite_part(half, halvings_left - 1)]

    async def _ask_twice(self, part: NotePart) -> list[MemoryDraft]:
        """Ask about a part, and once more after a useless answer. A third time rarely succeeds."""
        try:
            return await self._ask(part)
        except errors.CutOffReply:
            raise
        except errors.InvalidModelReply:
            return await self._ask(part)

    async def _ask(self, part: NotePart) -> list[MemoryDraft]:
        raw = self.raw_memory
        payer = Payer(raw.tenant, raw.agent_id, raw.user_id, Purpose.ENRICHMENT)
        user = prompt.user_prompt(raw, part)
        reply = await metered_calls.complete(
            self.resources, self.model, payer, self.system, user, prompt.REPLY_SCHEMA
        )
        return parse_reply.parse_drafts(reply.text, raw, self.system)
