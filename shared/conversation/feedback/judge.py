"""Let a model judge the doubtful corrections of a scope, many in one call.

A model's verdict makes a doubtful correction certain or deletes it. One without a verdict stays
doubtful and counts by its likelihood, as all do where no model is configured.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from shared.conversation.feedback import queries
from shared.conversation.feedback.feedback_signal import DoubtfulCorrection
from shared.foundation import errors, model_output, prompt_size
from shared.foundation.prompt_safety import single_line
from shared.foundation.scope import Scope
from shared.platform.resources import Resources
from shared.platform.spend.metered_calls import MeteredReply

DIRECTIVE = "corrections"
_BATCH_SIZE = 40
_MAX_REFUSALS = 12
"""After this many useless answers a run judges no more: to find one bad item among 40 takes six."""
_Batches = deque[tuple[Sequence[DoubtfulCorrection], int]]
log = structlog.get_logger()

Ask = Callable[[str, str], Awaitable[MeteredReply]]
"""Ask a model: a directive's name and the prompt in, its reply out."""
FreeTokens = Callable[[str], Awaitable[int]]
"""Return how many tokens a prompt may have beside a directive, by the directive's name."""


async def judge_doubtful(resources: Resources, scope: Scope, ask: Ask, free_tokens: FreeTokens) -> None:
    """Ask a model about the recent doubtful corrections of a scope, and store its verdicts.

    No transaction is open during a call. Corrections whose answer is refused or cut off are asked about in
    halves: one of them takes no other's verdict away. A reply that can't be used settles nothing. Raises
    what `ask` raises when the model is unavailable or may not be asked.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        doubtful = await queries.list_doubtful(
            tx, scope, settings.dream_signal_days, settings.dream_max_signals
        )
    batches = _batches(doubtful, await free_tokens(DIRECTIVE)) if doubtful else deque()
    refusals_left = _MAX_REFUSALS
    while batches and refusals_left:
        batch, max_tokens = batches.popleft()
        try:
            reply = await ask(DIRECTIVE, prompt_text(batch, max_tokens))
            verdicts = parse(reply.text, len(batch))
        except errors.InvalidModelReply as error:
            log.warning("corrections_not_judged", rows=len(batch), reason=str(error))
            refusals_left -= 1
            if len(batch) > 1 and (error.rejected_by_endpoint or isinstance(error, errors.CutOffReply)):
                middle = len(batch) // 2
                batches.extend([(batch[:middle], max_tokens), (batch[middle:], max_tokens)])
            continue
        await _settle(resources, scope, batch, verdicts)


def _batches(doubtful: Sequence[DoubtfulCorrection], free_tokens: int) -> _Batches:
    """Return batches, each with the tokens that a line of it may have."""
    max_tokens = max(1, free_tokens // 2)

    def tokens_of(correction: DoubtfulCorrection) -> int:
        return prompt_size.tokens_of(prompt_text([correction], max_tokens))

    parts = prompt_size.split(doubtful, tokens_of, free_tokens)
    return deque(
        (part[start : start + _BATCH_SIZE], max_tokens)
        for part in parts
        for start in range(0, len(part), _BATCH_SIZE)
    )


async def _settle(
    resources: Resources, scope: Scope, batch: Sequence[DoubtfulCorrection], verdicts: dict[int, bool]
) -> None:
    confirmed_ids = [batch[number - 1].id for number, corrects in verdicts.items() if corrects]
    rejected_ids = [batch[number - 1].id for number, corrects in verdicts.items() if not corrects]
    async with resources.postgres.for_tenant(scope.tenant) as tx:
        await queries.settle_doubtful(tx, confirmed_ids, rejected_ids)


def prompt_text(doubtful: Sequence[DoubtfulCorrection], max_tokens: int = 100_000) -> str:
    """Return the doubtful corrections, numbered from 1, each with what the assistant said before.

    What has more than `max_tokens` together is shortened.
    """
    lines = []
    for number, correction in enumerate(doubtful, start=1):
        previous = single_line(correction.previous) if correction.previous else "(not known)"
        texts = (f"{number}. assistant: {previous}", f"   user: {single_line(correction.detail)}")
        lines += [prompt_size.shorten(text, max_tokens // 2) for text in texts]
    return "\n".join(lines)


def parse(reply: str, count: int) -> dict[int, bool]:
    """Return the verdicts of a reply by the number of the correction, for numbers in 1..count.

    Raises errors.InvalidModelReply if the reply has no verdicts.
    """
    verdicts: Any = model_output.parse_object(reply, "verdicts").get("verdicts")
    if not isinstance(verdicts, dict):
        raise errors.InvalidModelReply("the reply has no verdicts")
    known_numbers = {str(number): number for number in range(1, count + 1)}
    return {
        known_numbers[number]: corrects
        for number, corrects in verdicts.items()
        if number in known_numbers and isinstance(corrects, bool)
    }
