"""Let a model dream over the example scope, on a stack of its own, and measure what it did."""

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
from services.local import ports
from services.local.stack import Running, Stack
from shared.foundation import config, errors

EXAMPLE = Path(__file__).parents[2] / "examples" / "dream"
_PASSES = ["deduplicate", "consolidate", "mine_anti_patterns"]
_LIMIT = 1800.0  # seconds for one scope: a slow model on a laptop takes its time
_POLL = 0.5
console = Console(highlight=False)
Json = dict[str, Any]


def evaluate(endpoint: str, model: str, example: Path | None) -> None:
    """Print precision and recall of the merges, what was wrongly pruned, and the facts lost."""
    folder = example or EXAMPLE
    scope, expected = _read(folder / "scope.json"), _read(folder / "expected.json")
    with tempfile.TemporaryDirectory(prefix="loci-dream-") as data_dir:
        entries = len(scope["entries"])
        console.print(f"Starting a stack; {model} at {endpoint} will dream over {entries} entries …")
        settings = config.load(
            data_dir=Path(data_dir),
            port=ports.pick_free_port(),
            flower_port=ports.pick_free_port(),
            llm_base_url=endpoint,
            llm_model=model,
            llm_api_key=_key(),
            llm_timeout=300,
            dream_lease=1200,
            dream_enabled=False,
        )
        with Stack(settings, say=lambda _: None).running() as running:
            before, after = _dream(running, scope)
    _print(score(before, after, expected))


def _key() -> SecretStr | None:
    return config.load().llm_api_key


def _read(path: Path) -> Json:
    try:
        told: Json = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise errors.Invalid(str(path), "is not to be read as JSON") from None
    return told


def _dream(running: Running, scope: Json) -> tuple[list[Json], list[Json]]:
    """Lay out the scope, dream over each of its parts, and return its entries before and after."""
    headers = {"authorization": f"Bearer {running.key}"}
    with httpx.Client(base_url=running.url, headers=headers, timeout=60) as client:
        users = list(dict.fromkeys(entry["user_id"] for entry in scope["entries"]))
        for user in users:
            _import(client, scope, user)
        _talk(client, scope)
        before = _entries(client, scope, users)
        for user in users:
            _night(client, scope, user)
        return before, _entries(client, scope, users)


def _identity(scope: Json, user: str | None) -> dict[str, str]:
    return {"agent_id": scope["agent_id"]} | ({"user_id": user} if user else {})


def _import(client: httpx.Client, scope: Json, user: str | None) -> None:
    """Import a user's entries under their own ids."""
    lines = [json.dumps(entry) for entry in scope["entries"] if entry["user_id"] == user]
    told = _answer(
        client.post("/v1/memories/import", content="\n".join(lines), params=_identity(scope, user))
    )
    if told["created"] != len(lines):
        raise errors.Conflict(f"the example was not taken in whole: {told}")


def _talk(client: httpx.Client, scope: Json) -> None:
    """Report the conversations; the users' corrections are noticed on the way."""
    for session in scope["sessions"]:
        opened = {"id": session["session_id"], **_identity(scope, session["user_id"])}
        _answer(client.post("/v1/sessions", json=opened))
        path = f"/v1/sessions/{session['session_id']}/turns/batch"
        _answer(client.post(path, json={"turns": session["turns"]}))
    for signal in scope["feedback"]:
        _answer(client.post("/v1/feedback", json=signal))


def _night(client: httpx.Client, scope: Json, user: str | None) -> None:
    body = {**_identity(scope, user), "passes": _PASSES}
    run = _answer(client.post("/v1/dreams", json=body))
    deadline = time.monotonic() + _LIMIT
    while run["state"] == "running":
        if time.monotonic() > deadline:
            raise errors.Unavailable("dream", f"the run over '{user}' has not ended")
        time.sleep(_POLL)
        run = _answer(client.get(f"/v1/dreams/{run['id']}"))
    for one in run["passes"]:
        did = ", ".join(f"{count} {action}" for action, count in one["applied"].items())
        refused = f", {len(one['rejections'])} refused" if one["rejections"] else ""
        told = one["reason"] or did or "nothing"
        console.print(f"  {user or 'common':<8} {one['name']:<20} {one['state']:<8} {told}{refused}")


def _entries(client: httpx.Client, scope: Json, users: list[str | None]) -> list[Json]:
    found: list[Json] = []
    for user in users:
        exported = client.get("/v1/memories/export", params=_identity(scope, user))
        found += [json.loads(line) for line in exported.text.splitlines()]
    return found


def _answer(response: httpx.Response) -> Json:
    if response.is_error:
        raise errors.Conflict(f"the gateway answered {response.status_code}: {response.text[:300]}")
    answer: Json = response.json()
    return answer


def _print(found: Score) -> None:
    console.print(f"\nmerges: precision {found.precision:.2f}, recall {found.recall:.2f}")
    for name, value in asdict(found).items():
        if name not in {"precision", "recall"}:
            shown = ", ".join(str(one) for one in value) or "none"
            console.print(f"{name.replace('_', ' ')}: {shown}")
    sys.stdout.flush()
