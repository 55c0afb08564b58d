"""What a pass works with: the run, its claim, and the model, with what it says kept and counted."""

import time
from dataclasses import dataclass, field
from decimal import Decimal

from shared import errors
from shared.directives import resolve
from shared.dreams import store
from shared.dreams.outcome import Nothing
from shared.dreams.record import PassName, Run
from shared.resources import Resources
from shared.spend import ask as spend
from shared.spend import money
from shared.spend.ask import Answer
from shared.spend.record import Payer
from shared.work import store as work
from shared.work.store import Claim


@dataclass(slots=True)
class Night:
    """One pass of one run, in this worker's hands."""

    resources: Resources
    run: Run
    claim: Claim
    name: PassName
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
    def allowed(self) -> float:
        """The seconds that a pass has: it ends before its lease does."""
        return self.resources.settings.dream_lease * 0.8

    def has_time(self) -> bool:
        """Tell whether a question and its repair, both as slow as may be, would still end in time."""
        return self.seconds + 2 * self.resources.settings.llm_timeout < self.allowed

    async def ask(self, directive: str, told: str) -> Answer:
        """Ask the model by a directive; nothing is locked or open meanwhile.

        Raises Nothing without a model and over budget, errors.Unavailable and errors.BadReply as the
        model does.
        """
        model = self.resources.language_model
        if model is None:
            raise Nothing("no language model is configured")
        async with self.resources.postgres.tenant(self.run.tenant) as connection:
            rules = await resolve.current(connection, self.resources.settings, self.run.tenant, directive)
            self.directive = f"{directive}@{rules.version}"
            await work.extend(connection, self.claim, self.resources.settings.dream_lease)
        payer = Payer(self.run.tenant, self.run.agent_id, self.run.user_id, self.name)
        try:
            answer = await spend.ask(self.resources, model, payer, rules.text, told)
        except errors.OverBudget as over:
            raise Nothing(str(over)) from None
        self._count(answer)
        return answer

    def _count(self, answer: Answer) -> None:
        self.input_tokens += answer.usage.input + answer.usage.cached
        self.output_tokens += answer.usage.output
        if answer.cost is not None:
            self.cost = money.total([self.cost or Decimal(0), answer.cost])

    def told(self) -> dict[str, object]:
        """Return what the pass's row says about the model."""
        model = self.resources.language_model
        return {
            "directive": self.directive,
            "model": model.model if model and self.directive else None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost,
        }

    async def note(self, **told: object) -> None:
        """Keep what is known so far, visible while the pass runs."""
        async with self.resources.postgres.tenant(self.run.tenant) as connection:
            await store.start_pass(connection, self.run, self.name, **told)
