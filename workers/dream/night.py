"""What a pass works with: the run, its claim, and the model, with what it says kept and counted."""

import asyncio
from dataclasses import dataclass

from shared import directives, errors
from shared.clients.language_model import Reply
from shared.dreams import store
from shared.dreams.outcome import Nothing
from shared.dreams.record import PassName, Run
from shared.resources import Resources
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

    async def ask(self, directive: str, told: str) -> Reply:
        """Ask the model by a directive; nothing is locked or open meanwhile.

        Raises Nothing without a model, errors.Unavailable and errors.BadReply as the model does.
        """
        model = self.resources.language_model
        if model is None:
            raise Nothing("no language model is configured")
        async with self.resources.postgres.tenant(self.run.tenant) as connection:
            rules = await directives.current(connection, self.resources.settings, self.run.tenant, directive)
            self.directive = f"{directive}@{rules.version}"
            await work.extend(connection, self.claim, self.resources.settings.dream_lease)
        try:
            async with asyncio.timeout(self.resources.settings.llm_timeout):
                reply = await model.ask(rules.text, told)
        except TimeoutError:
            raise errors.Unavailable("language model", "no answer in time") from None
        self._count(reply)
        return reply

    def _count(self, reply: Reply) -> None:
        self.input_tokens += _tokens(reply, "prompt_tokens")
        self.output_tokens += _tokens(reply, "completion_tokens")

    def told(self) -> dict[str, object]:
        """Return what the pass's row says about the model."""
        model = self.resources.language_model
        return {
            "directive": self.directive,
            "model": model.model if model and self.directive else None,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }

    async def note(self, **told: object) -> None:
        """Keep what is known so far, visible while the pass runs."""
        async with self.resources.postgres.tenant(self.run.tenant) as connection:
            await store.start_pass(connection, self.run, self.name, **told)


def _tokens(reply: Reply, name: str) -> int:
    value = reply.usage.get(name)
    return value if isinstance(value, int) and value > 0 else 0
