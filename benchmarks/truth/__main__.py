"""Run the benchmark: a stack, the stand-ins for its models, all parts, tables, and the goals."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from benchmarks import local_stack, machine
from benchmarks.local_stack import BenchmarkStack
from benchmarks.truth import data, facts, merges, model_server, pairs, report, rewritings
from benchmarks.truth.data import Half, Json, TruthData
from benchmarks.truth.gateway import Gateway
from benchmarks.truth.oracle import JudgeUse, Manner, Oracle
from benchmarks.truth.proposer import Proposer
from benchmarks.truth.report import Measured
from shared.verification import calibration
from shared.verification.trust import Trust

_NO_JUDGE = "none"
_NEVER_SECONDS = 86_400.0
_PARTS = (facts.PART, rewritings.PART, merges.PART)


def main(
    *,
    path: Annotated[Path, typer.Option("--data", exists=True, help="The labelled data (see data.py).")],
    judge: Annotated[
        str, typer.Option(help="oracle, none, yes, liar, or an endpoint's address.")
    ] = _NO_JUDGE,
    half: Annotated[Half, typer.Option(help="The half of the items to measure.")] = Half.BOTH,
    local_model: Annotated[
        bool, typer.Option("--local-model", help="Let the model of `make local-model` judge.")
    ] = False,
    parts: Annotated[str, typer.Option(help="Comma-separated.")] = ",".join(_PARTS),
    json_file: Annotated[Path | None, typer.Option("--json", help="Write every outcome here.")] = None,
    calibration_seconds: Annotated[float, typer.Option(help="How long to wait for it.")] = 60,
) -> None:
    """Measure what becomes of right and wrong proposals, and print tables."""
    started = time.monotonic()
    truth_data = data.read(path, half).only(parts.split(","))
    with ExitStack() as closing:
        proposer = Proposer(truth_data.dialogues)
        oracle = Oracle(Manner(judge), truth_data, calibration.read()) if judge in set(Manner) else None
        settings = _settings(closing, proposer, oracle, judge, is_local=local_model)
        running = closing.enter_context(local_stack.running(**settings))
        print(machine.describe())
        measured, judge_state, alone = asyncio.run(
            _measure(running, truth_data, proposer, oracle, calibration_seconds)
        )
    print(f"judge: {'local model' if local_model else judge}; {_describe(judge_state)}")
    print(f"half: {half.value}; {time.monotonic() - started:.0f} s\n")
    _print(measured, alone, is_judged=bool(judge_state.get("trusted", judge == Manner.ORACLE)))
    if json_file is not None:
        outcomes = [outcome.as_json() for outcome in measured.outcomes]
        json_file.write_text(json.dumps({"judge": judge, "outcomes": outcomes}, ensure_ascii=False, indent=1))


def _describe(judge_state: Json) -> str:
    if not judge_state:
        return "its trust is not reported"
    return f"{judge_state.get('state')}, trusted: {judge_state.get('trusted')}"


def _print(measured: Measured, alone: Trust | None, *, is_judged: bool) -> None:
    report.show(measured)
    if alone is not None:
        pairs.show(alone)
    report.show_goals(report.goals_of(measured, is_judged=is_judged))


def _settings(
    closing: ExitStack, proposer: Proposer, oracle: Oracle | None, judge: str, *, is_local: bool
) -> dict[str, Any]:
    """Start the stand-ins and return the stack's settings: nothing is mined or dreamt but on demand."""
    settings: dict[str, Any] = {
        "llm_base_url": closing.enter_context(model_server.serving("proposer", proposer.reply_to)),
        "llm_model": "proposer",
        "dream_enabled": False,
        "mine_rest_seconds": _NEVER_SECONDS,
    }
    if is_local:
        return settings | {"judge_base_url": closing.enter_context(_local_model()), "judge_model": None}
    if oracle is not None:
        address = closing.enter_context(model_server.serving("judge", oracle.reply_to))
        return settings | {"judge_base_url": address, "judge_model": None}
    # Of an address, LOCI_JUDGE_MODEL and LOCI_JUDGE_API_KEY are read from the environment.
    return settings | (
        {"judge_base_url": None, "judge_model": None} if judge == _NO_JUDGE else {"judge_base_url": judge}
    )


@contextmanager
def _local_model() -> Iterator[str]:
    command = [sys.executable, "-P", "-m", "services.cli", "serve-model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready_line = server.stdout.readline().split()
            if ready_line[:1] != ["ready"]:
                raise SystemExit("the local model did not start (is it installed, by `make local-model`?)")
            yield ready_line[1]
        finally:
            server.terminate()


async def _measure(
    running: BenchmarkStack,
    truth_data: TruthData,
    proposer: Proposer,
    oracle: Oracle | None,
    calibration_seconds: float,
) -> tuple[Measured, Json, Trust | None]:
    headers = {"authorization": f"Bearer {running.key}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=60) as client:
        gateway = Gateway(client)
        has_judge = running.settings.judge_base_url is not None
        judge = await gateway.await_calibration(calibration_seconds) if has_judge else {}
        outcomes = await facts.measure(gateway, proposer, truth_data.dialogues)
        use = None if oracle is None else JudgeUse(oracle.use.calls, oracle.use.claims, oracle.use.tokens)
        outcomes += await rewritings.measure(gateway, proposer, truth_data.rewrites)
        outcomes += await merges.measure(gateway, proposer, truth_data.merges)
    alone = await pairs.measure(running.settings, truth_data.pairs) if has_judge else None
    return Measured(outcomes, use), judge, alone


if __name__ == "__main__":
    typer.run(main)
