"""The labelled pairs, asked of the judge alone, in this process."""

from collections.abc import Sequence

from benchmarks import table
from shared.foundation.config import Settings
from shared.foundation.reply_schema import JsonSchema
from shared.infra.language_model import open_judge_model, open_language_model
from shared.verification import judge, trust
from shared.verification.calibration import LabelledClaim
from shared.verification.trust import Trust


async def measure(settings: Settings, pairs: Sequence[LabelledClaim]) -> Trust | None:
    """Return what the judge's verdicts show, or None without a judge. Raises errors.Unavailable."""
    model = open_judge_model(settings, open_language_model(settings))
    if model is None:
        return None

    async def complete(system: str, user: str, schema: JsonSchema) -> str:
        return (await model.complete(system, user, schema)).text

    try:
        return trust.measure(pairs, await judge.ask(complete, [pair.claim for pair in pairs]))
    finally:
        await model.close()


def show(measured: Trust) -> None:
    """Print precision and recall, and the right verdicts by language and type."""
    print("the judge alone, on the labelled pairs\n")
    shares = {
        "supported, of what it calls so": measured.precision,
        "found, of what is supported": measured.recall,
        **{f"right, {name}": share for name, share in (measured.by_language | measured.by_type).items()},
    }
    rows = [[name, f"{share.right} of {share.count}", f"{share.value:.1%}"] for name, share in shares.items()]
    table.show(("", "pairs", "share"), rows)
