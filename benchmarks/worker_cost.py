"""What a memory costs the workers: `python -m benchmarks.worker_cost [--memories 200] [--before TREE]`.

Memories are saved in one batch, and one by one, 20 a second. A worker enriches and embeds them with models
that answer at once. Shown is the processor time of the worker's process per memory, until nothing is pending.
With `--before`, the folder of another commit with the same schema, workers of both trees take turns on the
same stack. Compare the two columns: beside other work, only their ratio says something.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from benchmarks import local_stack, machine, process_table, table
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from services.local import data_dir, programs
from services.local.process import Process
from tests.standins.behaviours import Reply
from tests.standins.models import ModelServer
from tests.standins.wire import Call

_WARM_UP = 20
_GRACE_SECONDS = 30.0
_PACE_SECONDS = 0.05
_TREE = Path(__file__).parents[1]
_WAYS = ("at once", "one by one")


def main(
    memories: Annotated[int, typer.Option(help="Memories of one measurement.")] = 200,
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each kind, whose median counts.")] = 3,
    before: Annotated[Path | None, typer.Option(exists=True, help="The tree of another commit.")] = None,
) -> None:
    """Measure the worker's processor time per memory and print it in milliseconds."""
    print(machine.describe())
    trees = {"before": before.resolve(), "now": _TREE} if before else {"now": _TREE}
    with ModelServer(chat_default=Reply(_kept)) as model:
        values: dict[str, Any] = {
            "llm_base_url": model.url,
            "llm_model": "fast",
            "dream_enabled": False,
            "judge_calibration_tokens": 0,
        }
        commands = replace(programs.LOCI, background=(programs.loci("beat", "beat"),))
        with local_stack.running(model.url, commands, **values) as stack:
            figures: dict[tuple[str, str], list[float]] = {(way, name): [] for way in _WAYS for name in trees}
            for number in range(rounds):
                for name, tree in trees.items():
                    for way, cost in asyncio.run(_measure(stack, tree, memories, f"{number} {name}")).items():
                        figures[way, name].append(cost * 1000 / memories)
    print(f"{memories} memories, median of {rounds}, {machine.load()}\n")
    table.show(("saved", *(f"{name}: ms a memory" for name in trees), "ratio"), _rows(figures, list(trees)))


def _rows(figures: dict[tuple[str, str], list[float]], trees: list[str]) -> list[list[str]]:
    rows = []
    for way in _WAYS:
        medians = [median(figures[way, name]) for name in trees]
        rows.append([way, *(f"{figure:.1f}" for figure in medians), f"{medians[-1] / medians[0]:.2f}"])
    return rows


def _kept(call: Call) -> str:
    note = json.loads(call.body["messages"][-1]["content"])["content"]
    return json.dumps([{"content": f"{note} Kept."}])


async def _measure(stack: BenchmarkStack, tree: Path, memories: int, label: str) -> dict[str, float]:
    """Return the seconds of processor time of a worker of this tree, by the way of saving."""
    connection = Connection(stack.url, stack.key)
    with _worker(stack, tree) as pid:
        await _save_at_once(connection, _notes(f"{label} warm", _WARM_UP))
        await connection.settled()
        costs = {}
        for way, save in zip(_WAYS, (_save_at_once, _save_one_by_one), strict=True):
            used = process_table.processor_seconds(pid)[0]
            await save(connection, _notes(f"{label} {way}", memories))
            await connection.settled()
            costs[way] = process_table.processor_seconds(pid)[0] - used
    await connection.close()
    return costs


def _notes(label: str, count: int) -> list[dict[str, str]]:
    return [{"content": f"Lamp {number} of {label} stands in hall {number}."} for number in range(count)]


async def _save_at_once(connection: Connection, notes: list[dict[str, str]]) -> None:
    await connection.send("POST", "/v1/memories/batch", {"memories": notes})


async def _save_one_by_one(connection: Connection, notes: list[dict[str, str]]) -> None:
    for note in notes:
        await connection.send("POST", "/v1/memories", note)
        await asyncio.sleep(_PACE_SECONDS)


@contextmanager
def _worker(stack: BenchmarkStack, tree: Path) -> Iterator[int]:
    """Run a worker of all queues from the modules of a tree; yield the id of its process."""
    files = data_dir.DataDir(stack.settings.data_dir)
    program = programs.loci(f"worker-{time.monotonic_ns()}", "work")
    process = Process(
        program.name,
        program.argv,
        log=files.log(program.name),
        record_file=files.record(program.name),
        env=data_dir.environment(stack.settings, files.root) | {"PYTHONPATH": str(tree)},
    )
    process.start()
    try:
        assert process.pid is not None
        yield process.pid
    finally:
        process.stop(within=_GRACE_SECONDS)


if __name__ == "__main__":
    typer.run(main)
