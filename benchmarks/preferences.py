"""The speed of resolving preferences: `python -m benchmarks.preferences [--preferences 10000]`.

One user has this many preferences. Each names a flow, a described situation or both, and two related ones. It
is asked over HTTP by flow, by situation, and by both. Another user has as many that all name one flow and are
all related to one ("hub"). The goal is a p99 under a second.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import typer

from benchmarks import local_stack, machine, table
from benchmarks.closed_loop import Pace, drive
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection

_SEED = 7
_BATCH = 100
_FLOWS = 250
_USER, _HUB_USER = {"user_id": "ada"}, {"user_id": "bea"}
_HEAD = ("what", "preferences", "clients", "applied", "p50 ms", "p99 ms", "per second")
Ask = Callable[[Corpus, int], dict[str, Any]]
_ASKS: dict[str, Ask] = {
    "by flow": lambda _, number: _USER | {"flow": f"flow-{number % _FLOWS}"},
    "by situation": lambda corpus, _: _USER | {"situation": corpus.message()},
    "by both": lambda corpus, number: (
        _USER | {"flow": f"flow-{number % _FLOWS}", "situation": corpus.message()}
    ),
    "hub": lambda _, __: _HUB_USER | {"flow": "hub"},
}


def main(
    preferences: Annotated[int, typer.Option(help="Preferences of the user.")] = 10_000,
    clients: Annotated[str, typer.Option(help="Comma-separated.")] = "1,8",
    seconds: Annotated[float, typer.Option(help="Seconds per line of the table.")] = 10,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
) -> None:
    """Measure how long it takes to resolve preferences, and print a table."""
    counts = [int(number) for number in clients.split(",")]
    print(machine.describe())
    print(f"before: {machine.load()}")
    with local_stack.running(embedder) as running:
        rows = asyncio.run(_measured(running, preferences, counts, seconds))
    print(f"embedder: {embedder or 'none'}; {seconds:g} s a line\n")
    table.show(_HEAD, rows)


async def _measured(
    running: BenchmarkStack, count: int, client_counts: list[int], seconds: float
) -> list[list[str]]:
    corpus, rows = Corpus(_SEED), []
    connections = [Connection(running.url, running.key) for _ in range(max(client_counts))]
    await _fill(connections[0], [_preference(corpus, number, count) for number in range(count)])
    await _fill(connections[0], [_hub_preference(number) for number in range(count)])
    await connections[0].settled()
    for clients, (name, ask) in itertools.product(client_counts, _ASKS.items()):
        applied: list[int] = []
        acts = [_act(corpus, connection, ask, applied) for connection in connections[:clients]]
        rows.append(_row(name, count, clients, applied, await drive(acts, seconds)))
    for connection in connections:
        await connection.close()
    return rows


async def _fill(connection: Connection, preferences: list[dict[str, Any]]) -> None:
    """Store preferences under keys with their numbers."""
    operations = [
        {"method": "PUT", "path": f"/v1/preferences/p{number}", "body": body}
        for number, body in enumerate(preferences)
    ]
    for start in range(0, len(operations), _BATCH):
        batch = {"operations": operations[start : start + _BATCH]}
        answer = await connection.send("POST", "/v1/batch", batch)
        if any(result["status"] != 200 for result in answer["results"]):
            raise SystemExit("a preference was not stored")


def _preference(corpus: Corpus, number: int, count: int) -> dict[str, Any]:
    """Return a preference of the first user: a third names a flow, a third a situation, a third both."""
    flow, situation = {"flow": f"flow-{number % _FLOWS}"}, {"description": corpus.memory()["content"]}
    condition = (flow, situation, flow | situation)[number % 3]
    related = [f"p{(number * 7 + step) % count}" for step in (1, 2)]
    effect = {"slot": f"slot-{number % 50}", "value": number % 4}
    return {"condition": condition, "effect": effect, "related": related, **_USER}


def _hub_preference(number: int) -> dict[str, Any]:
    """Return a preference of the second user: all but the first name one flow, and the first."""
    effect = {"slot": f"slot-{number}", "value": number % 4}
    condition = {"flow": "hub" if number else "other"}
    return {"condition": condition, "effect": effect, "related": ["p0"], **_HUB_USER}


def _act(
    corpus: Corpus, connection: Connection, ask: Ask, applied: list[int]
) -> Callable[[], Awaitable[object]]:
    async def act() -> None:
        body = ask(corpus, len(applied))
        answer = await connection.send("POST", "/v1/preferences/resolve", body)
        # Of one flow a thousand are taken, and the answer says so.
        is_hub = body["user_id"] == _HUB_USER["user_id"]
        if answer["degraded"] != (["flow"] if is_hub else []):
            raise SystemExit(f"degraded: {answer['degraded']}")
        applied.append(len(answer["applies"]))

    return act


def _row(name: str, count: int, clients: int, applied: list[int], pace: Pace) -> list[str]:
    mean = sum(applied) / max(1, len(applied))
    times = (f"{pace.p50:.1f}", f"{pace.p99:.1f}", f"{pace.rate:.0f}")
    return [name, str(count), str(clients), f"{mean:.1f}", *times]


if __name__ == "__main__":
    typer.run(main)
