"""CV5: how `loci mine evaluate` counts what a model would have stored of the labelled conversations."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from services.cli import app
from services.commands.mining_evaluation import read_conversation
from services.commands.mining_score import ConversationScore, MiningScore, score_conversation
from shared.dreams.verification.fact_check import check
from shared.dreams.verification.fact_plan import ProposedFact, Relation
from tests.unit.mining.labelled import conversations, labelled_facts, proposed

TALK: dict[str, Any] = {
    "id": "talk",
    "when": "2026-03-04",
    "known": [
        {"id": "k1", "content": "The user lives in Aarhus.", "occurred_at": "2026-01-01"},
        {"id": "k2", "content": "The user has a cat in Aarhus.", "occurred_at": "2026-01-01"},
    ],
    "turns": ["u: We moved from Aarhus to Odense. Jonas has a dog.", "a: Nice.", "u: I could eat a horse."],
    "facts": [
        {
            "content": "The user moved from Aarhus to Odense.",
            "words": ["odense"],
            "sources": [1],
            "relation": "changed",
            "of": "k1",
        },
        {"content": "Jonas has a dog.", "words": ["jonas", "dog"], "sources": [1]},
    ],
    "none": [{"why": "joke", "words": ["horse"], "sources": [3]}],
}
MOVED, DOG = TALK["facts"]


def score(*labels: dict[str, Any]) -> ConversationScore:
    shown = read_conversation(TALK)
    return score_conversation(TALK, [check([proposed(TALK, label)], shown).facts[0] for label in labels])


def test_what_is_labelled_is_right_and_what_is_not_said_is_missed() -> None:
    assert score(MOVED) == ConversationScore(right=1, missed=("Jonas has a dog.",))
    assert score(MOVED, DOG) == ConversationScore(right=2)


def test_a_fact_that_is_said_twice_counts_once() -> None:
    assert score(MOVED, DOG, DOG).right == 2


def test_a_joke_and_what_no_label_says_are_wrong() -> None:
    joke, odd = "The user could eat a horse.", "Jonas moved."
    result = score(MOVED, DOG, {"content": joke, "sources": [3]}, {"content": odd, "sources": [1]})
    assert (result.right, result.wrong) == (2, (joke, odd))


def test_the_right_words_with_another_source_are_wrong() -> None:
    talk = TALK | {"turns": [*TALK["turns"], "a: Yes?", "u: Jonas has a dog."]}
    label = {"content": "Jonas has a dog.", "sources": [5]}
    facts = check([proposed(talk, label)], read_conversation(talk)).facts
    assert score_conversation(talk, facts).wrong == ("Jonas has a dog.",)


def test_a_memory_that_has_not_changed_is_wrongly_closed() -> None:
    label = {
        "content": "The user moved a dog from Aarhus.",
        "sources": [1],
        "relation": "changed",
        "of": "k2",
    }
    assert score(MOVED, DOG, label).wrongly_closed == ("The user has a cat in Aarhus.",)


def test_precision_and_recall_are_over_all_facts() -> None:
    parts = {"a": ConversationScore(right=3, wrong=("x",)), "b": ConversationScore(missed=("y", "z", "w"))}
    total = MiningScore(parts)
    assert (total.precision, total.recall, total.wrongly_closed) == (0.75, 0.5, 0)
    assert (MiningScore().precision, MiningScore().recall) == (1.0, 1.0)


CUT_OFF = "travel-01"


class _Model(BaseHTTPRequestHandler):
    """A model that answers the labelled facts of the conversation that it is shown, of one not to the end."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        prompt = request["messages"][1]["content"]
        talk = next(talk for talk in conversations() if f"## Session: {talk['id']}\n" in prompt)
        facts = [_as_reply(proposed(talk, fact)) for fact in talk["facts"]]
        message = {"content": json.dumps({"facts": facts})}
        ending = "length" if talk["id"] == CUT_OFF else "stop"
        body = json.dumps({"choices": [{"message": message, "finish_reason": ending}], "usage": {}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _as_reply(fact: ProposedFact) -> dict[str, Any]:
    return {
        "content": fact.content,
        "relation": fact.relation or Relation.NEW,
        "of": fact.of_id,
        "sources": [[session_id, seq] for session_id, seq in fact.sources],
    }


@pytest.fixture
def model_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def test_the_command_prints_what_a_model_is_worth(model_url: str, tmp_path: Path) -> None:
    example = tmp_path / "talks.jsonl"
    chosen = [talk for talk in conversations() if talk["id"] in {"travel-02", "empty-01", "booking-01"}]
    example.write_text("".join(json.dumps(talk) + "\n" for talk in chosen))
    arguments = ["mine", "evaluate", "--endpoint", model_url, "--example", str(example)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    facts = sum(len(talk["facts"]) for talk in chosen)
    assert f"facts stored: {facts} right, 0 wrong; 0 missed" in result.output
    assert "precision 1.00, recall 1.00" in result.output
    assert "wrongly closed memories: 0" in result.output
    assert "refused by the checks: none" in result.output


def test_a_conversation_without_a_usable_answer_counts_as_missed(model_url: str, tmp_path: Path) -> None:
    example = tmp_path / "talks.jsonl"
    [talk] = [talk for talk in conversations() if talk["id"] == CUT_OFF]
    example.write_text(json.dumps(talk) + "\n")
    arguments = ["mine", "evaluate", "--endpoint", model_url, "--example", str(example)]
    result = CliRunner().invoke(app, arguments)
    assert f"0 right, 0 wrong; {len(talk['facts'])} missed" in result.output
    assert "refused by the checks: 1 cut_off" in result.output


def test_the_labelled_set_has_the_size_that_it_is_to_have() -> None:
    talks = conversations()
    assert len(talks) >= 30
    assert len(list(labelled_facts())) >= 200
    assert sum(len(talk["none"]) for talk in talks) >= 100
