"""Play a conversation against a stack of its own and show what its last session is given.

Any transcript of the shape {conversations: [{turns: [{id, session, time, speaker, role, text}]}]}
will do. Its last session's first message is the one whose context is shown; everything before
is what the agent lived through. Ours also says which memories the agent saved and what lies on
the desks; for a transcript that doesn't, what users said is saved as it was said.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from services.local import ports
from services.local.stack import Running, Stack
from shared.foundation import config, errors

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-sessions.json"
_SYSTEM = "You are the agent of this conversation."
_MOST_CHARS = 16_000
_STYLES = {"system": "yellow", "user": "green", "assistant": "cyan"}
console = Console(highlight=False)
Json = dict[str, Any]


def play(path: Path | None) -> None:
    """Start a stack, play the first conversation of the file, print the context, stop everything."""
    conversation = read(path or EXAMPLE)
    console.print("Starting Postgres, Redis, the vector index, the gateway and the workers …")
    with tempfile.TemporaryDirectory(prefix="loci-demo-") as folder:
        settings = config.load(
            data_dir=Path(folder),
            port=ports.pick_free_port(),
            flower_port=ports.pick_free_port(),
            past_turns=3,
        )
        with Stack(settings, say=lambda _: None).running() as running:
            console.print(f"Running at {running.url}.\n")
            _show(*_live(running, conversation))
    console.print("\nEverything is stopped again. `loci up` keeps a stack running.")


def read(path: Path) -> Json:
    """Return the first conversation of a transcript."""
    try:
        conversation: Json = json.loads(path.read_text(encoding="utf-8"))["conversations"][0]
        last = conversation["turns"][-1]
        _ = last["session"], last["role"], last["text"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        rule = "is not a transcript {conversations: [{turns: [{session, time, speaker, role, text}]}]}"
        raise errors.Invalid(str(path), rule) from None
    return conversation


def _live(running: Running, conversation: Json) -> tuple[Json, float]:
    """Play everything up to the last session and return the context of its first message."""
    identity = {"agent_id": conversation.get("agent", "demo"), "user_id": conversation.get("user", "demo")}
    headers = {"authorization": f"Bearer {running.key}"}
    with httpx.Client(base_url=running.url, headers=headers, timeout=120) as client:
        sessions = _by_session(conversation["turns"])
        *earlier, last = sessions
        names = {name: _open(client, identity) for name in sessions}
        for name in earlier:
            _say_all(client, names[name], sessions[name])
        _save_all(client, identity, _memories(conversation, names, earlier))
        _lay_out(client, names[last], conversation.get("working_memory", []))
        return _ask(client, names[last], sessions[last][0]["text"])


def _by_session(turns: list[Json]) -> dict[str, list[Json]]:
    sessions: dict[str, list[Json]] = {}
    for turn in turns:
        sessions.setdefault(turn["session"], []).append(turn)
    return sessions


def _open(client: httpx.Client, identity: Json) -> str:
    return str(_answer(client.post("/v1/sessions", json=identity))["id"])


def _say_all(client: httpx.Client, session: str, turns: list[Json]) -> None:
    said = [
        {"role": t["role"], "content": t["text"], "speaker": t["speaker"], "created_at": t["time"]}
        for t in turns
    ]
    _answer(client.post(f"/v1/sessions/{session}/turns/batch", json={"turns": said}))
    console.print(f"  {turns[0]['time'][:10]}  a session of {len(turns)} turns")


def _memories(conversation: Json, names: dict[str, str], earlier: list[str]) -> list[Json]:
    turns = {turn["id"]: turn for turn in conversation["turns"]}
    saved = conversation.get("memories")
    if saved is None:
        said = [t for t in conversation["turns"] if t["session"] in earlier and t["role"] == "user"]
        saved = [{"content": _attributed(t), "source": t["id"]} for t in said]
    return [one | _occasion(turns[one["source"]], names) for one in saved]


def _attributed(turn: Json) -> str:
    return f"{turn['speaker']}: {turn['text']}"[:_MOST_CHARS]


def _occasion(turn: Json, names: dict[str, str]) -> Json:
    source = {"session_id": names[turn["session"]], "speaker": turn["speaker"], "role": turn["role"]}
    return {"source": source, "occurred_at": turn["time"]}


def _save_all(client: httpx.Client, identity: Json, memories: list[Json]) -> None:
    for start in range(0, len(memories), 500):
        batch = [memory | identity for memory in memories[start : start + 500]]
        _answer(client.post("/v1/memories/batch", json={"memories": batch}))
    console.print(f"  the agent saved {len(memories)} memories")


def _lay_out(client: httpx.Client, session: str, desk: list[Json]) -> None:
    for entry in desk:
        body = {name: value for name, value in entry.items() if name not in {"key", "value_from_headings"}}
        if "value_from_headings" in entry:
            body["value"] = "\n\n".join(
                f"# {h}\n\n{'(details) ' * 400}" for h in entry["value_from_headings"]
            )
        bound = {} if "/" in entry["key"] else {"namespace": f"session/{session}"}
        _answer(client.put(f"/v1/working/{entry['key']}", json=body, params=bound))
    if desk:
        console.print(f"  {len(desk)} things lie on its desk, a patrol's and a subagent's")


def _ask(client: httpx.Client, session: str, message: str) -> tuple[Json, float]:
    body = {"message": message, "system": _SYSTEM, "explain": True}
    started = time.perf_counter()
    answer = _answer(client.post(f"/v1/sessions/{session}/context", json=body))
    return answer, (time.perf_counter() - started) * 1000


def _answer(response: httpx.Response) -> Json:
    if response.is_error:
        raise errors.Conflict(f"the gateway answered {response.status_code}: {response.text[:300]}")
    answer: Json = response.json()
    return answer


def _show(answer: Json, milliseconds: float) -> None:
    console.print("\nA new session begins. This is what its first turn sends to the model:\n")
    for message in answer["messages"]:
        style = _STYLES.get(message["role"], "white")
        console.print(Panel(Text(message["content"]), title=message["role"], title_align="left", style=style))
    found = len(answer["recalled"])
    console.print(
        f"\n{found} memories recalled, {answer['tokens']} tokens, built in {milliseconds:.0f} ms"
        f" ({', '.join(answer['stages'])}). No language model was asked."
    )
