"""What `loci up` costs a machine: `python -m benchmarks.footprint [--memories 2760]`.

A `loci up` of its own is started on an empty directory, used by eight clients, and started again on the same
directory. Shown are the memory of each process after that use, the seconds until the stack is ready, the
processor time that each process has used by then, and the time of `loci --help`. Processor time depends less
on other load; `loci up` counts its own and that of the commands it has run to their end.

Memory is the proportional set size (Pss of /proc/PID/smaps_rollup, so this runs on Linux alone): a page that
several processes share counts once. A process counts together with its own children. The first start compiles
the modules that are not compiled yet; an installation's are.
"""

import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import machine, process_table, table
from benchmarks.corpus import Corpus
from benchmarks.raw_http import Connection

_SEED, _BATCH, _HELP_RUNS = 7, 500, 7
_CLIENTS, _REQUESTS = 8, 20  # the more clients at once, the more connections to Postgres
_KIB_PER_MIB = 1024
_OWN = "loci up"


@dataclass(frozen=True, slots=True)
class Up:
    """A running `loci up`: its process, address and data directory, and the seconds until it was ready."""

    pid: int
    url: str
    data: Path
    seconds: float


def main(
    memories: Annotated[int, typer.Option(help="Memories that are saved before measuring.")] = 2760,
    processes: Annotated[int, typer.Option(min=1, help="Processes of the gateway.")] = 1,
    starts: Annotated[int, typer.Option(min=1, help="Starts on the existing directory.")] = 3,
) -> None:
    """Measure memory, start and `loci --help`, and print them."""
    print(machine.describe())
    with tempfile.TemporaryDirectory(prefix="loci-bench-") as folder:
        data = Path(folder) / "data"
        with _running(data, processes) as first:
            asyncio.run(_use(first, memories))
            sizes = _by_process(first, _pss_mib)
        later_starts = []
        for _ in range(starts):
            with _running(data, processes) as later_stack:
                later_starts.append(later_stack.seconds)
                processor = _by_process(later_stack, _processor_seconds)
    _show(sizes, processor)
    print(f"{memories} memories; {_REQUESTS} searches and contexts of each of {_CLIENTS} clients")
    print(f"ready after {first.seconds:.1f} s on an empty directory, then {_spread(later_starts)} on it")
    print(f"loci --help: {_spread([_help_seconds() for _ in range(_HELP_RUNS)])}")


def _show(sizes: dict[str, float], processor: dict[str, float]) -> None:
    names = sorted(sizes, key=lambda name: -sizes[name])
    rows = [[name, f"{sizes[name]:.0f}", f"{processor.get(name, 0):.1f}"] for name in names]
    total = ["all", f"{sum(sizes.values()):.0f}", f"{sum(processor.values()):.1f}"]
    table.show(("process", "MiB after use", "processor s until ready"), [*rows, total])


@contextmanager
def _running(data: Path, gateway_processes: int) -> Iterator[Up]:
    environment = _environment(data) | {"LOCI_GATEWAY_PROCESSES": str(gateway_processes)}
    started = time.perf_counter()
    command = [sys.executable, "-P", "-m", "services.cli", "up"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()
            if words[:1] != ["ready"]:
                raise SystemExit(f"`loci up` did not start: see {data}/logs")
            yield Up(process.pid, words[1], data, time.perf_counter() - started)
        finally:
            process.send_signal(signal.SIGTERM)


def _environment(data: Path) -> dict[str, str]:
    """Return this process's environment without settings of Loci, and with free ports."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LOCI_")}
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    ports = {"LOCI_PORT": str(_free_port()), "LOCI_FLOWER_PORT": str(_free_port())}
    return {**inherited, **ports, "LOCI_DATA_DIR": str(data)}


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


async def _use(stack: Up, memories: int) -> None:
    corpus = Corpus(_SEED)
    connection = Connection(stack.url, _key(stack))
    for start in range(0, memories, _BATCH):
        batch = corpus.memories(min(_BATCH, memories - start))
        await connection.send("POST", "/v1/memories/batch", {"memories": batch})
    await asyncio.gather(*(_ask(stack, corpus, f"bench-{position}") for position in range(_CLIENTS)))
    await connection.settled()
    await connection.close()


async def _ask(stack: Up, corpus: Corpus, session: str) -> None:
    connection = Connection(stack.url, _key(stack))
    await connection.send("POST", "/v1/sessions", {"id": session})
    for _ in range(_REQUESTS):
        await connection.send("POST", "/v1/memories/search", {"query": corpus.message()})
        await connection.send("POST", f"/v1/sessions/{session}/context", {"message": corpus.message()})
    await connection.close()


def _key(stack: Up) -> str:
    return (stack.data / "dev-key").read_text().strip()


def _by_process(stack: Up, figure: Callable[[int], float]) -> dict[str, float]:
    """Return the figure of each child with its own children, by name, and of `loci up` itself."""
    records = sorted([*stack.data.glob("run/*.json"), *stack.data.glob("*/process.json")])
    pids = {_name(record): int(json.loads(record.read_text())["pid"]) for record in records}
    figures = {name: sum(map(figure, process_table.family(pid))) for name, pid in pids.items()}
    return {**figures, _OWN: figure(stack.pid)}


def _name(record: Path) -> str:
    return record.parent.name if record.name == "process.json" else record.stem


def _pss_mib(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0  # a connection of Postgres that has been closed meanwhile
    [kib] = [line.split()[1] for line in lines if line.startswith("Pss:")]
    return int(kib) / _KIB_PER_MIB


def _processor_seconds(pid: int) -> float:
    own_seconds, ended_seconds = process_table.processor_seconds(pid)
    return own_seconds + ended_seconds


def _help_seconds() -> float:
    started = time.perf_counter()
    subprocess.run([Path(sys.executable).with_name("loci"), "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def _spread(seconds: list[float]) -> str:
    range_text = f"{min(seconds):.2f} to {max(seconds):.2f}"
    return f"{statistics.median(seconds):.2f} s (median of {len(seconds)}, {range_text})"


if __name__ == "__main__":
    typer.run(main)
