"""What a pass works with: the run, its claim, and the model, with what it says kept and counted."""

import time
from dataclasses import dataclass, field
from decimal import Decimal

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
    """One pass of one run, in this worker's hands."""

    resources: Resources
    run: Run
    claim: Job
    name: DreamPass
    directive: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    # In USD; None as long as nothing that has a price was asked.
    cost: Decimal | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """The seconds that have passed."""
        return time.monotonic() - self.began

    @property
    def time_limit_seconds(self) -> float:
        """The seconds that a pass has: it ends before its lease does."""
        return self.resources.settings.dream_lease * 0.8

    def has_time(self) -> bool:
        """Tell whether a question and its repair, both as slow as may be, would still end in time."""
        return self.seconds + 2 * self.resources.settings.llm_timeout < self.time_limit_seconds

    async def ask(self, directive: str, told: str) -> MeteredReply:
        """Ask the model by a directive; nothing is locked or open meanwhile.

        Raises Nothing without a model and over budget, errors.Unavailable and errors.BadReply as the
        model does.
        """
        model = self.resources.language_model
        if model is None:
            raise PassSkipped("no language model is configured")
        async with self.resources.postgres.for_tenant(self.run.tenant) as connection:
            rules = await resolve.resolve(connection, self.resources.settings, self.run.tenant, directive)
            self.directive = f"{directive}@{rules.version}"
            await job_queries.extend_lease(connection, self.claim, self.resources.settings.dream_lease)
        payer = Payer(self.run.tenant, self.run.agent_id, self.run.user_id, self.name)
        try:
            answer = await metered_calls.complete(self.resources, model, payer, rules.text, told)
        except errors.OverBudget as over:
            raise PassSkipped(str(over)) from None
        self._count(answer)
        return answer

    def _count(self, answer: MeteredReply) -> None:
        self.input_tokens += answer.usage.input + answer.usage.cached
        self.output_tokens += answer.usage.output
        if answer.cost is not None:
            self.cost = money.total([self.cost or Decimal(0), answer.cost])

    def model_columns(self) -> dict[str, object]:
        """Return what the pass's row says about the model."""
        model = self.resources.language_model
        return {
            "directive": self.directive,
            "model": model.model if model and self.directive else None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost,
        }

    async def save_progress(self, **told: object) -> None:
        """Keep what is known so far, visible while the pass runs."""
        async with self.resources.postgres.for_tenant(self.run.tenant) as connection:
            await dream_queries.start_pass(connection, self.run, self.name, **told)
