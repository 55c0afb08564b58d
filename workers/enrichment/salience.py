"""Ask the model how salient snippets are, in parts as large as a prompt may be.

A part whose answer is cut off is asked again in halves. What can't be judged is left without a value, with
the reason: the promotion goes on with the other criteria.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.conversation.scratchpad.snippet import Snippet
from shared.dreams.promotion import criteria
from shared.dreams.promotion.criteria import Score
from shared.dreams.verification.plan import storable
from shared.foundation import errors, model_output, prompt_size
from shared.foundation.prompt_safety import single_line
from shared.foundation.reply_schema import NUMBER, TEXT, array_of, object_of
from shared.infra.language_model import LanguageModel
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer

REPLY_SCHEMA = object_of(snippets=array_of(object_of(id=TEXT, salience=NUMBER, reason=TEXT)))
_MAX_REASON = 200
_MISSING = "not judged: the model's answer lacks it"
_PROMPT_FRAME_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Judge:
    """The model that judges, who pays for it, and the tenant's directive."""

    resources: Resources
    model: LanguageModel
    payer: Payer
    directive: str

    async def judge(self, snippets: Sequence[Snippet]) -> dict[str, Score]:
        """Return the salience of each snippet by its id.

        Raises errors.Unavailable if the model can't be asked now, and errors.OverBudget.
        """
        room = self.model.max_prompt_tokens - prompt_size.tokens_of(self.directive) - _PROMPT_FRAME_TOKENS
        scores: dict[str, Score] = {}
        for part in prompt_size.split(snippets, _tokens_of, room):
            scores |= await self._judge_part(part)
        return scores

    async def _judge_part(self, part: Sequence[Snippet]) -> dict[str, Score]:
        try:
            return await self._ask_twice(part)
        except errors.CutOffReply:
            if len(part) > 1:
                middle = len(part) // 2
                return await self._judge_part(part[:middle]) | await self._judge_part(part[middle:])
            reason = "not judged: answer cut off"
        except errors.InvalidModelReply as error:
            reason = f"not judged: {error}"
        return {snippet.id: criteria.salience(None, reason) for snippet in part}

    async def _ask_twice(self, part: Sequence[Snippet]) -> dict[str, Score]:
        """Ask about a part, and once more after a useless answer. A third time rarely succeeds."""
        try:
            return await self._ask(part)
        except errors.CutOffReply:
            raise
        except errors.InvalidModelReply:
            return await self._ask(part)

    async def _ask(self, part: Sequence[Snippet]) -> dict[str, Score]:
        user = "\n".join(_to_line(snippet) for snippet in part)
        reply = await metered_calls.complete(
            self.resources, self.model, self.payer, self.directive, user, REPLY_SCHEMA
        )
        return parse_scores(reply.text, part)


def _to_line(snippet: Snippet) -> str:
    return json.dumps({"id": snippet.id, "text": snippet.content}, ensure_ascii=False)


def _tokens_of(snippet: Snippet) -> int:
    return prompt_size.tokens_of(_to_line(snippet))


def parse_scores(reply: str, snippets: Sequence[Snippet]) -> dict[str, Score]:
    """Return the salience of each snippet that was shown, by its id.

    One that the reply lacks has no value. Raises errors.InvalidModelReply if the reply judges none of them,
    and errors.CutOffReply if it doesn't end.
    """
    items = model_output.parse_listed_objects(reply, "snippets")
    judged = {str(item.get("id")): item for item in items if _is_share(item.get("salience"))}
    scores = {snippet.id: _score(judged[snippet.id]) for snippet in snippets if snippet.id in judged}
    if not scores:
        raise errors.InvalidModelReply("the reply judges none of the snippets")
    missing = criteria.salience(None, _MISSING)
    return {snippet.id: scores.get(snippet.id, missing) for snippet in snippets}


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and 0 <= value <= 1


def _score(item: Mapping[str, Any]) -> Score:
    reason = storable(single_line(str(item.get("reason") or "")))[:_MAX_REASON]
    return criteria.salience(float(item["salience"]), reason or "the model gave no reason")
