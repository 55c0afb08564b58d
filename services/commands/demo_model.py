"""Replay a conversation on a stack with the local model; show what it did, what was refused, and why."""

import re
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from services.commands import demo
from services.commands.gateway_reply import require_success
from services.local import ports, signals
from services.local.language_model import files
from services.local.language_model.server import LanguageModelServer
from services.local.stack import Running, Stack
from shared.foundation import config, errors

_WAIT_SECONDS = 1800.0
_POLL_SECONDS = 0.5
_PAGE = 100
console = Console(highlight=False)
Json = dict[str, Any]


def play(path: Path | None) -> None:
    """Replay the first conversation of the file, wait for the model's work, and print what became of it.

    Raises Misconfigured if `make local-model` was not run.
    """
    conversation = demo.read(path or demo.EXAMPLE)
    model_files = files.find(config.load().data_dir)
    console.print("Starting the model, Postgres, Redis, the vector index, the gateway and the workers …")
    with tempfile.TemporaryDirectory(prefix="loci-demo-") as folder:
        server = LanguageModelServer(Path(folder) / "language-model", model_files)
        with _running_stack(server, Path(folder) / "data") as running:
            console.print(f"{model_files.name} answers; Loci runs at {running.url}.\n")
            demo.replay(running.url, running.key, conversation)
            headers = {"authorization": f"Bearer {running.key}"}
            with httpx.Client(base_url=running.url, headers=headers, timeout=120) as client:
                _show_work(client, demo.identity_of(conversation))
    console.print("\nThe stack is stopped and its data is deleted. `loci serve-model` serves the model.")


@contextmanager
def _running_stack(server: LanguageModelServer, data_dir: Path) -> Iterator[Running]:
    with signals.interrupting():
        try:
            server.start()
            settings = config.load(
                data_dir=data_dir,
                port=ports.pick_free_port(),
                flower_port=ports.pick_free_port(),
                dream_initial_delay=86_400,  # it dreams when it is told to
                **server.client_settings,
            )
            with Stack(settings, say=lambda _: None).running() as running:
                yield running
        finally:
            server.stop()


def _show_work(client: httpx.Client, identity: Json) -> None:
    console.print("\nThe model works on what was said and saved. This takes minutes …")
    wait_until_idle(client)
    run_dream(client, identity)
    wait_until_idle(client)
    refusals = Counter[str]()
    for run in list_runs(client, identity):
        print_run(run, refusals)
    memories = list_memories(client, identity)
    console.print("\nThe memories:")
    for memory in memories:
        _print_memory(memory)
    refusals += count_refused_notes(memories)
    _print_calls(client)
    console.print(f"refused, by reason: {format_counts(refusals)}")


def wait_until_idle(client: httpx.Client, within: float = _WAIT_SECONDS) -> None:
    """Wait until the gateway reports no pending work; raise errors.Unavailable after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        status = require_success(client.get("/v1/status"))
        waiting = {name: count for name, count in status["pending"].items() if count}
        if not waiting:
            return
        if time.monotonic() > deadline:
            raise errors.Unavailable("language model", f"still pending: {format_counts(waiting)}")
        time.sleep(_POLL_SECONDS)


def run_dream(client: httpx.Client, identity: Json) -> Json:
    """Dream over a scope and return the run when it has ended."""
    run = require_success(client.post("/v1/dreams", json=identity))
    deadline = time.monotonic() + _WAIT_SECONDS
    while run["state"] == "running":
        if time.monotonic() > deadline:
            raise errors.Unavailable("language model", f"the dream run {run['id']} has not ended")
        time.sleep(_POLL_SECONDS)
        run = require_success(client.get(f"/v1/dreams/{run['id']}"))
    return run


def list_runs(client: httpx.Client, identity: Json) -> list[Json]:
    """Return the runs over a scope with their passes, the oldest first; mining is a run, too."""
    listed = require_success(client.get("/v1/dreams", params=identity))["results"]
    return [require_success(client.get(f"/v1/dreams/{run['id']}")) for run in reversed(listed)]


def print_run(run: Json, refusals: Counter[str]) -> None:
    """Print a line for each pass of a run, and add its refusals to the counts by reason."""
    console.print(f"\nRun {run['id']}:")
    for pass_ in run["passes"]:
        codes = Counter(rejection["code"] for rejection in pass_["rejections"])
        refusals += codes
        refused = f"refused: {format_counts(codes)}" if codes else ""
        result = "; ".join(filter(None, (pass_["reason"], format_counts(pass_["applied"]), refused)))
        console.print(f"  {pass_['name']:<20} {pass_['state']:<8} {result}")


def list_memories(client: httpx.Client, identity: Json) -> list[Json]:
    """Return the live memories of a scope, all pages."""
    memories: list[Json] = []
    cursor = None
    while True:
        parameters = {**identity, "limit": _PAGE} | ({"cursor": cursor} if cursor else {})
        page = require_success(client.get("/v1/memories", params=parameters))
        memories += page["results"]
        cursor = page["next_cursor"]
        if cursor is None:
            return memories


def count_refused_notes(memories: list[Json]) -> Counter[str]:
    """Count the memories that stayed as they were written because of the model's answer, by reason.

    The reason is without the words that it names.
    """
    reasons = (memory["failure_reason"] for memory in memories)
    return Counter(re.split(r": |,", reason, maxsplit=1)[0] for reason in reasons if reason)


def format_counts(counts: dict[str, int] | Counter[str]) -> str:
    """Return counts as text, the largest first: `3 loses_specifics, 1 blank`."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name}" for name, count in ordered if count) or "none"


def _print_memory(memory: Json) -> None:
    origin = "rewritten" if memory["derived_from"] else "as written"
    reason = f" ({memory['failure_reason']})" if memory["failure_reason"] else ""
    console.print(f"  {memory['state']:<8} {origin:<10} {memory['content']}{reason}")


def _print_calls(client: httpx.Client) -> None:
    groups = require_success(client.get("/v1/spend", params={"group_by": "purpose"}))["results"]
    for group in groups:
        tokens = f"{group['input_tokens']} + {group['output_tokens']} tokens"
        console.print(f"  {group['charges']:>3} calls for {group['purpose']:<20} {tokens}")
