"""Run dreams with a given model over the example scope, on a stack of its own, and measure the result."""

import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr
from rich.console import Console

from services.commands.dream_score import Score, score
from services.commands.gateway_reply import require_success
from services.local import ports
from services.local.stack import Running, Stack
from shared.foundation import config, errors

EXAMPLE = Path(__file__).parents[2] / "examples" / "dream"
_PASSES = ["deduplicate", "consolidate", "mine_anti_patterns"]
_RUN_TIMEOUT_SECONDS = 1800.0  # a slow model on a laptop takes minutes for one scope
_POLL_SECONDS = 0.5
console = Console(highlight=False)
Json = dict[str, Any]


def evaluate(endpoint: str, model: str, example: Path | None) -> None:
    """Print precision and recall of the merges, what was wrongly pruned, and which facts were lost."""
    folder = example or EXAMPLE
    scope, expected = _read_json(folder / "scope.json"), _read_json(folder / "expected.json")
    with tempfile.TemporaryDirectory(prefix="loci-dream-") as data_dir:
        count = len(scope["entries"])
        console.print(f"Starting a stack; {model} at {endpoint} will consolidate {count} memories …")
        settings = config.load(
            data_dir=Path(data_dir),
            port=ports.pick_free_port(),
            flower_port=ports.pick_free_port(),
            llm_base_url=endpoint,
            llm_model=model,
            llm_api_key=_configured_key(),
            llm_timeout=300,
            job_lease=400,
            dream_lease=1200,
            dream_enabled=False,
        )
        with Stack(settings, say=lambda _: None).running() as running:
            before, after = _run_dreams(running, scope)
    _print_score(score(before, after, expected))


def _configured_key() -> SecretStr | None:
    return config.load().llm_api_key


def _read_json(path: Path) -> Json:
    try:
        payload: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise errors.Invalid(str(path), "can't be read as JSON") from None
    return payload


def _run_dreams(running: Running, scope: Json) -> tuple[list[Json], list[Json]]:
    """Load the example, run a dream over each of its scopes, and return the memories before and after."""
    headers = {"authorization": f"Bearer {running.key}"}
    with httpx.Client(base_url=running.url, headers=headers, timeout=60) as client:
        users = list(dict.fromkeys(memory["user_id"] for memory in scope["entries"]))
        for user in users:
            _import_memories(client, scope, user)
        _report_sessions(client, scope)
        before = _export_memories(client, scope, users)
        for user in users:
            _run_dream(client, scope, user)
        return before, _export_memories(client, scope, users)


def _identity(scope: Json, user: str | None) -> dict[str, str]:
    return {"agent_id": scope["agent_id"]} | ({"user_id": user} if user else {})


def _import_memories(client: httpx.Client, scope: Json, user: str | None) -> None:
    """Import a user's memories under their own ids."""
    lines = [json.dumps(memory) for memory in scope["entries"] if memory["user_id"] == user]
    report = require_success(
        client.post("/v1/memories/import", content="\n".join(lines), params=_identity(scope, user))
    )
    if report["created"] != len(lines):
        raise errors.Conflict(f"the example was not imported completely: {report}")


def _report_sessions(client: httpx.Client, scope: Json) -> None:
    """Report the conversations and the feedback. The gateway detects the users' corrections."""
    for session in scope["sessions"]:
        body = {"id": session["session_id"], **_identity(scope, session["user_id"])}
        require_success(client.post("/v1/sessions", json=body))
        path = f"/v1/sessions/{session['session_id']}/turns/batch"
        require_success(client.post(path, json={"turns": session["turns"]}))
    for signal in scope["feedback"]:
        require_success(client.post("/v1/feedback", json=signal))


def _run_dream(client: httpx.Client, scope: Json, user: str | None) -> None:
    """Start a run over a user's scope, wait until it has ended, and print a line for each pass."""
    body = {**_identity(scope, user), "passes": _PASSES}
    run = require_success(client.post("/v1/dreams", json=body))
    deadline = time.monotonic() + _RUN_TIMEOUT_SECONDS
    while run["state"] == "running":
        if time.monotonic() > deadline:
            raise errors.Unavailable("dream", f"the run over the scope of '{user}' has not ended")
        time.sleep(_POLL_SECONDS)
        run = require_success(client.get(f"/v1/dreams/{run['id']}"))
    for pass_ in run["passes"]:
        changes = ", ".join(f"{count} {action}" for action, count in pass_["applied"].items())
        rejections = f", {len(pass_['rejections'])} refused" if pass_["rejections"] else ""
        result = pass_["reason"] or changes or "nothing"
        console.print(f"  {user or 'common':<8} {pass_['name']:<20} {pass_['state']:<8} {result}{rejections}")


def _export_memories(client: httpx.Client, scope: Json, users: list[str | None]) -> list[Json]:
    memories: list[Json] = []
    for user in users:
        response = client.get("/v1/memories/export", params=_identity(scope, user))
        memories += [json.loads(line) for line in response.text.splitlines()]
    return memories


def _print_score(result: Score) -> None:
    console.print(f"\nmerges: precision {result.precision:.2f}, recall {result.recall:.2f}")
    for name, value in asdict(result).items():
        if name not in {"precision", "recall"}:
            items = ", ".join(str(item) for item in value) or "none"
            console.print(f"{name.replace('_', ' ')}: {items}")
    sys.stdout.flush()
