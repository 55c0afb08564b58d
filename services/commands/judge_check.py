"""Ask a judge the labelled questions that come with the product, and print how far it can be trusted."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from rich.progress import track
from rich.table import Table

from shared.foundation import config, errors
from shared.foundation.reply_schema import JsonSchema
from shared.infra.language_model import LanguageModel, open_judge_model, open_language_model
from shared.infra.postgres import Postgres
from shared.platform.spend import usage
from shared.verification import calibration, judge, queries, trust
from shared.verification.calibration import LabelledClaim
from shared.verification.claim import Judgement
from shared.verification.judge_identity import identity_of
from shared.verification.trust import Share, Trust

console = Console(highlight=False)


def check(endpoint: str | None, model: str | None) -> int:
    """Print the judge's shares by type and language. Return 0 if it can be trusted, otherwise 1.

    Raises errors.Unavailable if the endpoint stops answering, and errors.Invalid if none is configured.
    """
    changes = {"judge_base_url": endpoint, "judge_model": model}
    given = {name: text for name, text in changes.items() if text is not None}
    return asyncio.run(_check(config.load(**given), is_configured_judge=not given))


async def _check(settings: config.Settings, *, is_configured_judge: bool) -> int:
    model = open_judge_model(settings, open_language_model(settings))
    if model is None:
        raise errors.Invalid("endpoint", "must be given, or LOCI_JUDGE_BASE_URL, or LOCI_LLM_BASE_URL")
    pairs = calibration.read_mixed()
    started, interview = time.monotonic(), _Interview(model)
    try:
        console.print(f"{await model.name()} judges {len(pairs)} claims …")
        judgements = await interview.ask_all(pairs)
    finally:
        await model.close()
    measured = trust.measure(pairs, judgements)
    _print(measured)
    seconds = time.monotonic() - started
    console.print(f"{interview.tokens} tokens, {seconds:.0f} s, directive {judge.directive_version()}")
    if is_configured_judge:
        await _store(settings, model, interview, measured)
    return _print_outcome(measured)


async def _store(
    settings: config.Settings, model: LanguageModel, interview: "_Interview", measured: Trust
) -> None:
    """Store what was measured of the judge that workers ask, if there is a database."""
    if settings.postgres_url is None:
        return
    postgres = Postgres(settings)
    try:
        async with postgres.across_tenants() as tx:
            name = interview.model_name or await model.name()
            await queries.store(tx, identity_of(model), name, measured)
            await queries.book(tx, interview.tokens)
        console.print("stored: workers go by this from now on")
    except errors.Unavailable as error:
        console.print(f"not stored: {error}")
    finally:
        await postgres.close()


class _Interview:
    """Asks a model, and counts its tokens."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.tokens = 0
        self.model_name: str | None = None

    async def ask_all(self, pairs: Sequence[LabelledClaim]) -> list[Judgement | None]:
        """Return the judgement of each pair: None where the model gave no clear one."""
        judgements: list[Judgement | None] = []
        starts = range(0, len(pairs), judge.MAX_CLAIMS)
        for start in track(starts, description="asking", console=console, transient=True):
            batch = [pair.claim for pair in pairs[start : start + judge.MAX_CLAIMS]]
            judgements += await judge.ask(self._complete, batch)
        if without := judgements.count(None):
            console.print(f"{without} claims have no clear verdict, and count as wrong")
        return judgements

    async def _complete(self, system: str, user: str, schema: JsonSchema) -> str:
        reply = await self._model.complete(system, user, schema)
        if self.model_name not in {None, reply.model}:
            raise errors.Unavailable("judge", f"{self.model_name} became {reply.model} in the middle")
        self.model_name = reply.model
        with suppress(errors.Invalid):  # of a shape that nobody knows: then its tokens are not counted
            self.tokens += usage.parse_usage(reply.usage).total
        return reply.text


def _print(measured: Trust) -> None:
    for title, shares in (("type", measured.by_type), ("language", measured.by_language)):
        console.print(_table(title, shares))
    console.print(f"supported, of what it calls so: {_described(measured.precision)}")
    console.print(f"found, of what is supported:    {_described(measured.recall)}")


def _table(title: str, shares: Mapping[str, Share]) -> Table:
    table = Table(title, "right", "of", box=None, padding=(0, 2, 0, 0))
    for name, share in shares.items():
        table.add_row(name, str(share.right), str(share.count))
    return table


def _described(share: Share) -> str:
    return f"{share.right} of {share.count} ({share.value:.0%})"


def _print_outcome(measured: Trust) -> int:
    for reason in measured.reasons_against:
        console.print(f"- {reason}")
    console.print("trusted" if measured.is_trusted else "not trusted: its verdicts decide nothing")
    return 0 if measured.is_trusted else 1
