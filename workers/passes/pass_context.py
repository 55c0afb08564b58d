"""What a pass works with: its run, its job, and the model, whose replies are counted."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from shared.dreams.passes import reply_schemas
from shared.dreams.runs import queries as dream_queries
from shared.dreams.runs.dream_run import Run
from shared.dreams.runs.outcome import PassSkipped
from shared.foundation import errors, prompt_size
from shared.foundation.stages import DreamPass, Stage, stage_of_pass
from shared.jobs import counters as fleet_counters
from shared.jobs import queries as job_queries
from shared.jobs.job import Job
from shared.platform.directives import resolve
from shared.platform.directives.directive import Directive
from shared.platform.resources import Resources
from shared.platform.spend import metered_calls
from shared.platform.spend.charge import Payer, Purpose, purpose_of_pass
from shared.platform.spend.metered_calls import MeteredReply
from shared.platform.spend.usage import Usage
from shared.verification import decision
from shared.verification.decision import Decision, Statement
from shared.verification.trusted_judge import find_trusted_judge


class LeaseLost(Exception):
    """Another worker has the job of the pass, so nothing more may be recorded."""


@dataclass(slots=True)
class PassContext:
    """One pass of one run, as one worker executes it."""

    resources: Resources
    run: Run
    job: Job
    name: DreamPass
    # What the pass has given to the model so far; None before it has read anything.
    inputs: dict[str, Any] | None = None
    # The size of the batch in which a memory got no usable reply, by memory id.
    refused_batch_sizes: dict[str, int] = field(default_factory=dict)
    # The directives that the pass has asked with, by name; the last one is that of the pass itself.
    _directives: dict[str, Directive] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @property
    def stage(self) -> Stage:
        """The stage of the run's job while this pass is the next one."""
        return stage_of_pass(self.name)

    @property
    def seconds(self) -> float:
        """The seconds since the pass started."""
        return time.monotonic() - self.started

    @property
    def time_limit_seconds(self) -> float:
        """The seconds that a pass may take: after its lease another worker can claim its job."""
        return self.resources.settings.dream_lease * 0.8

    def has_time(self) -> bool:
        """Tell whether two calls of the model would end in time, each at its timeout."""
        return self.seconds + 2 * self.resources.settings.llm_timeout < self.time_limit_seconds

    async def free_tokens(self, directive: str) -> int:
        """Return about how many tokens a prompt may have beside the directive.

        Raises PassSkipped if no model is configured.
        """
        model = self.resources.language_model
        if model is None:
            raise PassSkipped("no language model is configured")
        resolved_directive = await self._resolve(directive)
        directive_tokens = prompt_size.tokens_of(resolved_directive.text)
        allowed_tokens = min(self.resources.settings.dream_prompt_tokens, model.max_prompt_tokens)
        return max(1, allowed_tokens - directive_tokens)

    async def ask(self, directive: str, prompt_text: str) -> MeteredReply:
        """Ask the model with a directive. No transaction is open meanwhile.

        Raises PassSkipped if no model is configured or the budget is used up, errors.CutOffReply if the
        answer ends before it is complete (so that what it covers is to be asked in smaller parts), LeaseLost
        if another worker has the job by now, and errors.Unavailable and errors.InvalidModelReply as the
        model's client does.
        """
        model = self.resources.language_model
        if model is None:
            raise PassSkipped("no language model is configured")
        resolved_directive = await self._resolve(directive)
        await self._save_inputs()
        payer = Payer(self.run.tenant, self.run.agent_id, self.run.user_id, purpose_of_pass(self.name))
        booked: list[tuple[Usage, Decimal | None]] = []
        try:
            return await metered_calls.complete(
                self.resources,
                model,
                payer,
                resolved_directive.text,
                prompt_text,
                reply_schemas.BY_DIRECTIVE.get(directive),
                on_settled=lambda usage, cost: booked.append((usage, cost)),
            )
        except errors.OverBudget as error:
            raise PassSkipped(str(error), has_more=True) from None
        finally:
            for usage, cost in booked:
                await self._count(usage, cost)

    async def decide(self, statements: Sequence[Statement]) -> list[Decision]:
        """Decide about statements: by the judge that is trusted now, or by signs. No transaction is open.

        Raises LeaseLost if another worker has the job by now.
        """
        judge = await find_trusted_judge(self.resources) if statements else None
        if judge is not None:
            await self._save_inputs()
        payer = Payer(self.run.tenant, self.run.agent_id, self.run.user_id, Purpose.JUDGE)
        return await decision.decide(judge, payer, statements)

    async def _resolve(self, directive: str) -> Directive:
        """Return the tenant's directive. It is read once, so that all parts of a pass have the same."""
        if directive not in self._directives:
            async with self.resources.postgres.for_tenant(self.run.tenant) as tx:
                self._directives[directive] = await resolve.resolve(tx, self.resources.settings, directive)
        return self._directives[directive]

    async def _save_inputs(self) -> None:
        """Save what the model is given before it is asked, and extend the lease.

        If the worker dies, the sweep knows what was read. Raises LeaseLost if another worker has the job: the
        answer would be paid and thrown away.
        """
        inputs = {} if self.inputs is None else {"inputs": self.inputs}
        async with self.resources.postgres.for_tenant(self.run.tenant) as tx:
            # The job first, as an erasure does: otherwise each would wait for what the other has locked.
            if not await job_queries.extend_lease(tx, self.job, self.resources.settings.dream_lease):
                raise LeaseLost
            await dream_queries.start_pass(tx, self.run, self.name, **self._model_columns(), **inputs)

    def _model_columns(self) -> dict[str, object]:
        """Return the columns of the pass that say which model it asks, and by which directive."""
        model = self.resources.language_model
        if model is None or not self._directives:
            return {}
        directive = next(reversed(self._directives.values()))
        return {"directive": f"{directive.name}@{directive.version}", "model": model.model}

    async def _count(self, usage: Usage, cost: Decimal | None) -> None:
        """Add a call to what the pass has used, at once: a later failure must not lose it."""
        input_tokens, output_tokens = usage.input + usage.cached, usage.output
        async with self.resources.postgres.for_tenant(self.run.tenant) as tx:
            await dream_queries.add_usage(tx, self.run, self.name, input_tokens, output_tokens, cost)
            tokens = {"input": input_tokens, "output": output_tokens}
            await fleet_counters.increment(tx, "dream_tokens", tokens)
            await fleet_counters.increment(tx, "dream_cost_usd", {self.name: float(cost or 0)})

    async def save_progress(self, **columns: object) -> None:
        """Save that the pass has started, with columns that are known so far, visible while it runs."""
        async with self.resources.postgres.for_tenant(self.run.tenant) as tx:
            await dream_queries.start_pass(tx, self.run, self.name, **columns)
