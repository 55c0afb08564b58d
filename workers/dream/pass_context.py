"""What a pass works with: its run, its job, and the model, whose replies are counted."""

import time
from dataclasses import dataclass, field
from decimal import Decimal

from shared.dreams.passes import reply_schemas
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import PassSkipped
from shared.foundation import errors
from shared.foundation.stages import DreamPass
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.directives import resolve
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls, money
from shared.platform.spend.charge import Payer
from shared.platform.spend.metered_calls import MeteredReply


@dataclass(slots=True)
class PassContext:
    """One pass of one run, as one worker executes it."""

    resources: Resources
    run: Run
    job: Job
    name: DreamPass
    directive: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    # In USD; None until a reply had a price.
    cost: Decimal | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The seconds since the pass started."""
        return time.monotonic() - self.started

    @property
    def time_limit_seconds(self) -> float:
        """The seconds that a pass may take: after its lease another worker can claim its job."""
        return self.resources.settings.dream_lease * 0.8

    def has_time(self) -> bool:
        """Tell whether a call of the model and its repair would end in time, each at its timeout."""
        return self.seconds + 2 * self.resources.settings.llm_timeout < self.time_limit_seconds

    async def ask(self, directive: str, prompt_text: str) -> MeteredReply:
        """Ask the model with a directive. No transaction is open meanwhile.

        Raises PassSkipped if no model is configured or the budget is used up, errors.CutOffReply if the
        answer ends before it is complete (so that what it covers is to be asked in smaller parts), and
        errors.Unavailable and errors.InvalidModelReply as the model's client does.
        """
        settings, tenant = self.resources.settings, self.run.tenant
        model = self.resources.language_model
        if model is None:
            raise PassSkipped("no language model is configured")
        async with self.resources.postgres.for_tenant(tenant) as connection:
            resolved_directive = await resolve.resolve(connection, settings, tenant, directive)
            self.directive = f"{directive}@{resolved_directive.version}"
            await job_queries.extend_lease(connection, self.job, settings.dream_lease)
        payer = Payer(tenant, self.run.agent_id, self.run.user_id, self.name)
        try:
            reply = await metered_calls.complete(
                self.resources,
                model,
                payer,
                resolved_directive.text,
                prompt_text,
                reply_schemas.BY_DIRECTIVE.get(directive),
            )
        except errors.OverBudget as error:
            raise PassSkipped(str(error)) from None
        self._count(reply)
        return reply

    def _count(self, reply: MeteredReply) -> None:
        self.input_tokens += reply.usage.input + reply.usage.cached
        self.output_tokens += reply.usage.output
        if reply.cost is not None:
            self.cost = money.total([self.cost or Decimal(0), reply.cost])

    def model_columns(self) -> dict[str, object]:
        """Return the columns of the pass that describe the use of the model."""
        model = self.resources.language_model
        return {
            "directive": self.directive,
            "model": model.model if model and self.directive else None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost,
        }

    async def save_progress(self, **columns: object) -> None:
        """Save that the pass has started, with columns that are known so far, visible while it runs."""
        async with self.resources.postgres.for_tenant(self.run.tenant) as connection:
            await dream_queries.start_pass(connection, self.run, self.name, **columns)
