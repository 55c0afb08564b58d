"""Replay a conversation on a temporary stack and print the context that its last session begins with.

Any transcript of the form {conversations: [{turns: [{id, session, time, speaker, role, text}]}]}
works. The context is built for the first message of the last session; all earlier sessions are
replayed before. Our example also lists the memories that the agent saved and its working memory. For
a transcript without such a list, the users' turns are saved as memories.
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

from services.commands import demo_mining, scripted_model
from services.commands.gateway_reply import require_success
from services.local import ports
from services.local.stack import Stack
from shared.foundation import config, errors

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-sessions.json"
_SYSTEM = "You are the agent of this conversation."
_MAX_MEMORY_CHARACTERS = 16_000
_STYLES = {"system": "yellow", "user": "green", "assistant": "cyan"}
console = Console(highlight=False)
Json = dict[str, Any]


def play(path: Path | None) -> None:
    """Start a stack, replay the first conversation of the file, print the context, and stop the stack."""
    conversation = read(path or EXAMPLE)
    console.print("Starting Postgres, Redis, the vector index, the gateway and the workers …")
    scene = demo_mining.read()
    with (
        tempfile.TemporaryDirectory(prefix="loci-demo-") as folder,
        scripted_model.serve(scene["sessions"]) as model_url,
    ):
        settings = config.load(
            data_dir=Path(folder),
            port=ports.pick_free_port(),
            flower_port=ports.pick_free_port(),
            recall_past_turns=3,
            llm_base_url=model_url,
            llm_model="scripted",
            judge_calibration_tokens=0,  # a script knows no verdicts
        )
        with Stack(settings, say=lambda _: None).running() as running:
            console.print(f"Running at {running.url}.\n")
            replay(running.url, running.key, conversation)
            demo_mining.play(running.url, running.key, scene)
    console.print("\nThe stack is stopped and its data is deleted. `loci up` keeps a stack running.")


def replay(url: str, key: str, conversation: Json) -> None:
    """Replay a conversation at a gateway and print the context that its last session begins with."""
    _print_context(*_replay(url, key, conversation))


def read(path: Path) -> Json:
    """Return the first conversation of a transcript. Raise errors.Invalid if the file has another form."""
    try:
        conversation: Json = json.loads(path.read_text(encoding="utf-8"))["conversations"][0]
        last = conversation["turns"][-1]
        _ = last["session"], last["role"], last["text"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        rule = "is not a transcript {conversations: [{turns: [{session, time, speaker, role, text}]}]}"
        raise errors.Invalid(str(path), rule) from None
    return conversation


def identity_of(conversation: Json) -> Json:
    """Return the agent and the user of a conversation."""
    return {"agent_id": conversation.get("agent", "demo"), "user_id": conversation.get("user", "demo")}


def _replay(url: str, key: str, conversation: Json) -> tuple[Json, float]:
    """Replay all sessions but the last. Return the context of the last one's first message, and its ms."""
    identity = identity_of(conversation)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        turns_by_session = _group_by_session(conversation["turns"])
        *earlier, last = turns_by_session
        session_ids = {name: _open_session(client, identity) for name in turns_by_session}
        for name in earlier:
            _append_turns(client, session_ids[name], turns_by_session[name])
        _save_memories(client, identity, _memories_to_save(conversation, session_ids, earlier))
        _write_working_memory(client, session_ids[last], conversation.get("working_memory", []))
        return _build_context(client, session_ids[last], turns_by_session[last][0]["text"])


def _group_by_session(turns: list[Json]) -> dict[str, list[Json]]:
    turns_by_session: dict[str, list[Json]] = {}
    for turn in turns:
        turns_by_session.setdefault(turn["session"], []).append(turn)
    return turns_by_session


def _open_session(client: httpx.Client, identity: Json) -> str:
    return str(require_success(client.post("/v1/sessions", json=identity))["id"])


def _append_turns(client: httpx.Client, session_id: str, turns: list[Json]) -> None:
    bodies = [
        {
            "role": turn["role"],
            "content": turn["text"],
            "speaker": turn["speaker"],
            "created_at": turn["time"],
        }
        for turn in turns
    ]
    require_success(client.post(f"/v1/sessions/{session_id}/turns/batch", json={"turns": bodies}))
    console.print(f"  {turns[0]['time'][:10]}  a session of {len(turns)} turns")


def _memories_to_save(conversation: Json, session_ids: dict[str, str], earlier: list[str]) -> list[Json]:
    turns_by_id = {turn["id"]: turn for turn in conversation["turns"]}
    memories = conversation.get("memories")
    if memories is None:
        memories = [
            {"content": _with_speaker(turn), "source": turn["id"]}
            for turn in conversation["turns"]
            if turn["session"] in earlier and turn["role"] == "user"
        ]
    return [memory | _source_fields(turns_by_id[memory["source"]], session_ids) for memory in memories]


def _with_speaker(turn: Json) -> str:
    return f"{turn['speaker']}: {turn['text']}"[:_MAX_MEMORY_CHARACTERS]


def _source_fields(turn: Json, session_ids: dict[str, str]) -> Json:
    source = {"session_id": session_ids[turn["session"]], "speaker": turn["speaker"], "role": turn["role"]}
    return {"source": source, "occurred_at": turn["time"]}


def _save_memories(client: httpx.Client, identity: Json, memories: list[Json]) -> None:
    for start in range(0, len(memories), 500):
        batch = [memory | identity for memory in memories[start : start + 500]]
        require_success(client.post("/v1/memories/batch", json={"memories": batch}))
    console.print(f"  the agent saved {len(memories)} memories")


def _write_working_memory(client: httpx.Client, session_id: str, entries: list[Json]) -> None:
    for entry in entries:
        body = {name: value for name, value in entry.items() if name not in {"key", "value_from_headings"}}
        if "value_from_headings" in entry:
            body["value"] = "\n\n".join(
                f"# {heading}\n\n{'(details) ' * 400}" for heading in entry["value_from_headings"]
            )
        parameters = {} if "/" in entry["key"] else {"namespace": f"session/{session_id}"}
        require_success(client.put(f"/v1/working/{entry['key']}", json=body, params=parameters))
    if entries:
        console.print(f"  {len(entries)} entries are in working memory: its own, a patrol's and a subagent's")


def _build_context(client: httpx.Client, session_id: str, message: str) -> tuple[Json, float]:
    body = {"message": message, "system": _SYSTEM, "explain": True}
    started = time.perf_counter()
    context = require_success(client.post(f"/v1/sessions/{session_id}/context", json=body))
    return context, (time.perf_counter() - started) * 1000


def _print_context(context: Json, elapsed_ms: float) -> None:
    console.print("\nA new session begins. This is the context of its first model call:\n")
    for message in context["messages"]:
        style = _STYLES.get(message["role"], "white")
        console.print(Panel(Text(message["content"]), title=message["role"], title_align="left", style=style))
    recalled_count = len(context["recalled"])
    console.print(
        f"\n{recalled_count} memories recalled, {context['tokens']} tokens, built in {elapsed_ms:.0f} ms"
        f" ({', '.join(context['stages'])}). No language model was asked for it."
    )
