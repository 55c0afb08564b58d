"""Whatever a weak model says, no name, number or date of a note is gone afterwards.

The model is that of `make local-model`. It enriches notes of our own and the examples, mines and summarises
the example conversations, and dreams over each scope; then what became of each note is looked up in the live
memories and in the evidence that leads to them, and of each turn in the log.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.commands import demo, demo_mining, demo_model
from services.commands.gateway_reply import require_success
from services.commands.lineage import Lineage
from services.local.language_model import files
from services.local.language_model.server import LanguageModelServer
from shared.foundation import config
from shared.language.text_parser import parse_text
from tests.journey.stack import run_stack
from tests.memory_folder import memory_folder
from tests.model import labels
from tests.model.labels import LabelledNote

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        "LOCI_MODEL_CHECK" not in os.environ,
        reason="asks a real model for half an hour, and needs its weights: run by `make model-check`",
    ),
]
EXAMPLES = Path(demo.EXAMPLE).parent
_HOURS = 7200.0
_SMALL_WINDOW = {"context_window_turns": 6, "context_window_step": 2}
"""A session of eight turns has a summary."""
Json = dict[str, Any]


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """Return a client of a stack whose model is the local one."""
    with memory_folder() as folder:
        model = LanguageModelServer(folder / "model", files.find(config.load().data_dir))
        try:
            model.start()
            settings = model.client_settings | {"dream_initial_delay": 86_400, **_SMALL_WINDOW}
            with run_stack(folder / "data", without=["flower"], **settings) as stack:
                headers = {"authorization": f"Bearer {stack.running.key}"}
                with httpx.Client(base_url=stack.running.url, headers=headers, timeout=120) as client:
                    yield client
        finally:
            model.stop()


NOTES = {"agent_id": "notes", "user_id": "ada"}


@pytest.fixture(scope="module")
def saved_notes(client: httpx.Client) -> list[Json]:
    """Save the labelled notes in one scope, and wait until the model has worked on each."""
    saved = _save(client, NOTES, [{"content": note.content} for note in _chosen(labels.read())])
    _enrich(client, NOTES, saved)
    return saved


def test_enrichment_loses_no_fact_of_a_labelled_note(client: httpx.Client, saved_notes: list[Json]) -> None:
    assert _lost_labels(Lineage.build(saved_notes, _export(client, NOTES)), saved_notes) == {}


def test_a_dream_loses_no_fact_of_a_labelled_note(client: httpx.Client, saved_notes: list[Json]) -> None:
    assert _lost_labels(_dream(client, NOTES, saved_notes), saved_notes) == {}


@pytest.mark.parametrize("user", [None, "mira", "jonas"])
def test_no_fact_of_the_dream_example_is_lost(client: httpx.Client, user: str | None) -> None:
    scope = json.loads((EXAMPLES / "dream" / "scope.json").read_text(encoding="utf-8"))
    entries = [entry for entry in scope["entries"] if entry["user_id"] == user]
    assert entries
    identity = {"agent_id": "office"} | ({"user_id": user} if user else {})
    fields = ("content", "category", "tags", "importance")
    saved = _save(client, identity, [{name: entry[name] for name in fields} for entry in entries])
    assert _lost_specifics(_work(client, identity, saved), saved) == {}


def test_no_fact_of_the_demo_is_lost(client: httpx.Client) -> None:
    conversation = demo.read(demo.EXAMPLE)
    identity = {"agent_id": conversation["agent"], "user_id": conversation["user"]}
    key = client.headers["authorization"].removeprefix("Bearer ")
    demo.replay(str(client.base_url).rstrip("/"), key, conversation)
    saved = _export(client, identity)
    assert _lost_specifics(_work(client, identity, saved), saved) == {}


def test_mining_invents_nothing_and_loses_no_memory_and_no_turn(client: httpx.Client) -> None:
    scene = demo_mining.read()
    identity = {"agent_id": scene["agent"], "user_id": scene["user"]}
    [known] = _save(client, identity, [{"content": "The user lives in Aarhus.", "enrich": False}])
    texts = ["Aarhus"]
    for session in scene["sessions"]:
        session_id, turns = _talk(client, identity, session["turns"], session["time"])
        texts += [turn["content"] for turn in turns]
        require_success(client.post(f"/v1/sessions/{session_id}/mine"))
        demo_model.wait_until_idle(client, within=_HOURS)
        assert _turns_of(client, session_id) == turns
    for run in demo_model.list_runs(client, identity):
        demo_model.print_run(run, Counter())
    memories = _export(client, identity)
    assert known["id"] in {memory["id"] for memory in memories}, "closed perhaps, but not gone"
    said = parse_text("\n".join(texts))
    invented = {
        memory["content"]: parse_text(memory["content"]).certain_missing_in(said) for memory in memories
    }
    assert not any(invented.values()), invented


def test_a_summary_leaves_every_turn_where_it_is(client: httpx.Client) -> None:
    conversation = demo.read(demo.EXAMPLE)
    spoken = [
        turn for turn in conversation["turns"] if turn["session"] == conversation["turns"][0]["session"]
    ]
    identity = {"agent_id": "summarised", "user_id": conversation["user"]}
    session_id, turns = _talk(client, identity, spoken, spoken[0]["time"])
    demo_model.wait_until_idle(client, within=_HOURS)
    body = {"message": "What now?", "record_turn": False}
    context = require_success(client.post(f"/v1/sessions/{session_id}/context", json=body))
    summaries = [block["text"] for block in context["blocks"] if block["kind"] == "summary"]
    demo_model.console.print(f"\nsummary of {len(turns)} turns: {summaries or 'none'}")
    shown = [message["content"] for message in context["messages"]]
    assert summaries or all(turn["content"] in shown for turn in turns), "in the summary, or replayed"
    assert _turns_of(client, session_id) == turns


def _talk(client: httpx.Client, identity: Json, turns: list[Json], at: str) -> tuple[str, list[Json]]:
    """Report a session of these turns; return its id, and each turn's role and content."""
    session_id = str(require_success(client.post("/v1/sessions", json=identity))["id"])
    bodies = [{"role": turn["role"], "content": turn["text"]} for turn in turns]
    batch = {"turns": [body | {"created_at": at} for body in bodies]}
    require_success(client.post(f"/v1/sessions/{session_id}/turns/batch", json=batch))
    return session_id, bodies


def _turns_of(client: httpx.Client, session_id: str) -> list[Json]:
    """Return the role and the content of each turn of a session."""
    listed = require_success(client.get(f"/v1/sessions/{session_id}/turns", params={"limit": 100}))
    return [{name: turn[name] for name in ("role", "content")} for turn in listed["results"]]


def _chosen(notes: list[LabelledNote]) -> list[LabelledNote]:
    """Return all notes, or as many of all languages as LOCI_MODEL_CHECK_NOTES says."""
    count = int(os.environ.get("LOCI_MODEL_CHECK_NOTES") or len(notes))
    return notes[:: max(1, len(notes) // count)][:count]


def _save(client: httpx.Client, identity: Json, drafts: list[Json]) -> list[Json]:
    body = {"memories": [draft | identity for draft in drafts]}
    return list(require_success(client.post("/v1/memories/batch", json=body))["results"])


def _work(client: httpx.Client, identity: Json, saved: list[Json]) -> Lineage:
    _enrich(client, identity, saved)
    return _dream(client, identity, saved)


def _enrich(client: httpx.Client, identity: Json, saved: list[Json]) -> None:
    """Wait until the model has worked on each note, and print what was made of them and what was kept."""
    demo_model.wait_until_idle(client, within=_HOURS)
    _print_report(identity, saved, _export(client, identity))


def _dream(client: httpx.Client, identity: Json, saved: list[Json]) -> Lineage:
    """Dream over the scope, print what was applied and refused, and return what became of the notes."""
    demo_model.run_dream(client, identity)
    demo_model.wait_until_idle(client, within=_HOURS)
    for run in demo_model.list_runs(client, identity):
        demo_model.print_run(run, Counter())
    return Lineage.build(saved, _export(client, identity))


def _export(client: httpx.Client, identity: Json) -> list[Json]:
    response = client.get("/v1/memories/export", params=identity)
    return [json.loads(line) for line in response.raise_for_status().text.splitlines()]


def _print_report(identity: Json, saved: list[Json], enriched: list[Json]) -> None:
    saved_ids = {memory["id"] for memory in saved}
    notes = [memory for memory in enriched if memory["id"] in saved_ids]
    states = Counter("rewritten" if memory["superseded_by"] else memory["state"] for memory in notes)
    refusals = demo_model.count_refused_notes(notes)
    demo_model.console.print(f"\n{identity}: {len(notes)} notes, {demo_model.format_counts(states)}")
    demo_model.console.print(f"kept as they were written: {demo_model.format_counts(refusals)}")


def _texts_of(lineage: Lineage, memory: Json) -> str:
    """Return the texts by which searches find what a memory said: its live successors' and its own."""
    successors = lineage.live_successors(memory["id"])
    evidence = [memory["content"]] if successors else []
    return "\n".join([*(successor["content"] for successor in successors), *evidence])


def _lost_labels(lineage: Lineage, saved: list[Json]) -> dict[str, list[str]]:
    by_content = {memory["content"]: memory for memory in saved}
    missing = {
        note.content: note.missing_in(_texts_of(lineage, by_content[note.content]))
        for note in _chosen(labels.read())
    }
    return {content: words for content, words in missing.items() if words}


def _lost_specifics(lineage: Lineage, saved: list[Json]) -> dict[str, list[str]]:
    missing = {
        memory["content"]: parse_text(memory["content"]).missing_in(parse_text(_texts_of(lineage, memory)))
        for memory in saved
    }
    return {content: words for content, words in missing.items() if words}
