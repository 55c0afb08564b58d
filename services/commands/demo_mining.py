"""The second scene of the demo: facts are mined out of two conversations, and a third one knows them.

The agent saves nothing. A stand-in for a model proposes facts (`scripted_model`); code decides about them.
"""

import json
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from services.commands.gateway_reply import require_success
from shared.foundation import errors

EXAMPLE = Path(__file__).parents[2] / "examples" / "mined-sessions.json"
_POLL_SECONDS = 0.1
_MAX_SECONDS = 60
console = Console(highlight=False)
Json = dict[str, Any]


def read() -> Json:
    """Return the sessions of the scene with what the stand-in proposes for each."""
    scene: Json = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    return scene


def play(url: str, key: str, scene: Json) -> None:
    """Report the sessions at a gateway, mine each, and print what a new session recalls."""
    identity = {"agent_id": scene["agent"], "user_id": scene["user"]}
    console.print("\nNow nobody saves anything: what is worth knowing is mined out of the conversation.\n")
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
        for session in scene["sessions"]:
            _report(client, identity, session)
        _ask(client, identity, scene)


def _report(client: httpx.Client, identity: Json, session: Json) -> None:
    session_id = require_success(client.post("/v1/sessions", json=identity))["id"]
    turns = [
        {"role": turn["role"], "content": turn["text"], "created_at": session["time"]}
        for turn in session["turns"]
    ]
    require_success(client.post(f"/v1/sessions/{session_id}/turns/batch", json={"turns": turns}))
    for turn in session["turns"]:
        console.print(f"  {session['time'][:10]}  {turn['role']:>9}: {turn['text']}")
    run = _wait_for_end(client, require_success(client.post(f"/v1/sessions/{session_id}/mine"))["id"])
    for change in require_success(client.get(f"/v1/dreams/{run['id']}/diff"))["results"]:
        memory = require_success(client.get(f"/v1/memories/{change['entry_id']}"))
        console.print(f"    {change['action']}: {memory['content']}", style="green")
    for rejection in run["passes"][0]["rejections"]:
        proposed = run["passes"][0]["proposed"][rejection["index"]]["content"]
        console.print(f"    refused: {proposed} ({rejection['detail']})", style="red")
    console.print()


def _wait_for_end(client: httpx.Client, run_id: str) -> Json:
    deadline = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < deadline:
        run = require_success(client.get(f"/v1/dreams/{run_id}"))
        if run["state"] == "done":
            return run
        time.sleep(_POLL_SECONDS)
    raise errors.Unavailable("workers", "the turns were not mined in time")


def _ask(client: httpx.Client, identity: Json, scene: Json) -> None:
    session_id = require_success(client.post("/v1/sessions", json=identity))["id"]
    body = {"message": scene["question"]}
    context = require_success(client.post(f"/v1/sessions/{session_id}/context", json=body))
    console.print(f'A new session asks: "{scene["question"]}" It recalls:')
    for memory in context["recalled"]:
        console.print(f"  - {memory['content']}", style="yellow")
    search = {"query": "Does the user live in Aarhus?", "as_of": scene["as_of"], **identity}
    found = require_success(client.post("/v1/memories/search", json=search))["results"]
    console.print(f"What was right on {scene['as_of'][:10]} can still be asked for:")
    for memory in found:
        console.print(f"  - {memory['content']}", style="yellow")
