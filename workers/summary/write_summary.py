"""Ask the model for the summary of a part of a conversation, of less if its answer is cut off."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.conversation.summary.due import DueSummary
from shared.conversation.summary.summary import SessionSummary
from shared.conversation.turns.turn import Turn
from shared.foundation import errors, prompt_size
from shared.infra.language_model import LanguageModel
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose
from workers.summary import conversation_part, prompt

DIRECTIVE = "summary"
MAX_HALVINGS = 5
_INSIGHTS_SHARE = 4
"""Of the room for turns, insights have this part at most: 64 long ones may be more than a prompt."""
_FORMAT_TOKENS = 100
"""Of the JSON around the turns, and of the names of its fields."""


async def write_summary(resources: Resources, model: LanguageModel, due: DueSummary) -> SessionSummary | None:
    """Return a summary of the turns that are due, or of the first of them if not all fit into one prompt.

    Return None if they were deleted meanwhile. Raises errors.OverBudget, errors.Unavailable and
    errors.InvalidModelReply as the model's client does; the last one after a second useless answer, too.
    """
    writer = await _open(resources, model, due)
    async with resources.postgres.for_tenant(due.session.tenant) as tx:
        turns = await conversation_part.read_part(tx, due, writer.max_tokens)
    return await writer.write(turns) if turns or (due.standing and due.insights) else None


async def _open(resources: Resources, model: LanguageModel, due: DueSummary) -> "_SummaryWriter":
    tenant = due.session.tenant
    async with resources.postgres.for_tenant(tenant) as tx:
        directive = await resolve.resolve(tx, resources.settings, DIRECTIVE)
    system = prompt.system_prompt(directive.text)
    room = max(1, model.max_prompt_tokens - prompt_size.tokens_of(system) - _FORMAT_TOKENS)
    # It may have been written for a model with more room.
    text_so_far = due.text_so_far and prompt_size.shorten(due.text_so_far, room // 2)
    room -= prompt_size.tokens_of(prompt.user_prompt(text_so_far, [], [], 0))
    insights = prompt.fitting_insights(due.insights, room // _INSIGHTS_SHARE)
    used_tokens = sum(map(prompt.tokens_of_insight, insights))
    return _SummaryWriter(resources, model, due, system, text_so_far, insights, max(1, room - used_tokens))


@dataclass(frozen=True, slots=True)
class _SummaryWriter:
    """What is summarised, the model that does it, its rules, and how many tokens the turns may have.

    The summary so far and the insights are those of `due`, as far as they fit.
    """

    resources: Resources
    model: LanguageModel
    due: DueSummary
    system: str
    text_so_far: str | None
    insights: Sequence[str]
    max_tokens: int

    async def write(self, turns: Sequence[Turn]) -> SessionSummary:
        """Return a summary of these turns and of what stood before them.

        While the answer is cut off, ask about the first half of them, and about less and less of one turn.
        """
        max_tokens = self.max_tokens
        for _ in range(MAX_HALVINGS):
            try:
                return await self._ask_twice(turns, max_tokens)
            except errors.CutOffReply:
                if len(turns) <= 1:
                    max_tokens //= 2
                turns = turns[: (len(turns) + 1) // 2]
        return await self._ask_twice(turns, max_tokens)

    async def _ask_twice(self, turns: Sequence[Turn], max_tokens: int) -> SessionSummary:
        """Ask, and once more after a useless answer. A third time rarely succeeds."""
        try:
            return await self._ask(turns, max_tokens)
        except errors.CutOffReply:
            raise
        except errors.InvalidModelReply:
            return await self._ask(turns, max_tokens)

    async def _ask(self, turns: Sequence[Turn], max_tokens: int) -> SessionSummary:
        session, standing = self.due.session, self.due.standing
        payer = Payer(session.tenant, session.agent_id, session.user_id, Purpose.SUMMARY)
        user = prompt.user_prompt(self.text_so_far, turns, self.insights, max_tokens)
        reply = await metered_calls.complete(
            self.resources, self.model, payer, self.system, user, prompt.REPLY_SCHEMA
        )
        return SessionSummary(
            session_id=session.id,
            content=prompt.parse_reply(reply.text),
            first_seq=standing.first_seq if standing else turns[0].seq,
            last_seq=turns[-1].seq if turns else self.due.after,
            model=self.model.model,
        )
