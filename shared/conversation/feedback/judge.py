"""Let a model judge the doubtful corrections of a scope, many in one call.

A model's verdict makes a doubtful correction certain or deletes it. One without a verdict stays
doubtful and counts by its likelihood, as all do where no model is configured.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog

from shared.conversation.feedback import queries
from shared.conversation.feedback.feedback_signal import DoubtfulCorrection
from shared.foundation import errors, model_output
from shared.foundation.prompt_safety import single_line
from shared.foundation.scope import Scope
from shared.platform.resources import Resources
from shared.platform.spend.metered_calls import MeteredReply

DIRECTIVE = "corrections"
_BATCH_SIZE = 40
log = structlog.get_logger()

Ask = Callable[[str, str], Awaitable[MeteredReply]]
"""Ask a model: a directive's name and the prompt in, its reply out."""


async def judge_doubtful(resources: Resources, scope: Scope, ask: Ask) -> None:
    """Ask a model about the recent doubtful corrections of a scope, and store its verdicts.

    No transaction is open during a call. A reply that can't be read settles nothing. Raises what `ask`
    raises.
    """
    settings = resources.settings
    async with resources.postgres.for_tenant(scope.tenant) as connection:
        doubtful = await queries.list_doubtful(
            connection, scope, settings.dream_signal_days, settings.dream_max_signals
        )
    for start in range(0, len(doubtful), _BATCH_SIZE):
        batch = doubtful[start : start + _BATCH_SIZE]
        reply = await ask(DIRECTIVE, prompt_text(batch))
        try:
            verdicts = parse(reply.text, len(batch))
        except errors.InvalidModelReply as error:
            log.warning("corrections_not_judged", reason=str(error))
            continue
        confirmed_ids = [batch[number - 1].id for number, corrects in verdicts.items() if corrects]
        rejected_ids = [batch[number - 1].id for number, corrects in verdicts.items() if not corrects]
        async with resources.postgres.for_tenant(scope.tenant) as connection:
            await queries.settle_doubtful(connection, scope.tenant, confirmed_ids, rejected_ids)


def prompt_text(doubtful: Sequence[DoubtfulCorrection]) -> str:
    """Return the doubtful corrections, numbered from 1, each with what the assistant said before."""
    lines = []
    for number, correction in enumerate(doubtful, start=1):
        previous = single_line(correction.previous) if correction.previous else "(not known)"
        lines += [f"{number}. assistant: {previous}", f"   user: {single_line(correction.detail)}"]
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
