"""The stand-in for a language model proposes each text of the data once, when its sources were shown."""

import json
from datetime import UTC, datetime
from typing import Any

from benchmarks.truth.data import TruthData
from benchmarks.truth.proposer import Proposer
from services.commands.mining_evaluation import read_conversation
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import facts
from shared.dreams.verification.fact_check import ShownConversation
from shared.foundation.roles import Role
from shared.memory.longterm.memory import Memory
from workers.dream import consolidate
from workers.enrichment import prompt
from workers.enrichment.note_part import NotePart

_KNOWN_ID = "0123456789ab"


def _shown(truth_data: TruthData, session: str, memory: Memory | None = None) -> str:
    turns = {
        (turn.session, turn.seq): Turn(
            session_id=turn.session,
            seq=turn.seq,
            role=Role(turn.role),
            speaker=None,
            content=turn.text,
            created_at=datetime(2026, 3, 1, tzinfo=UTC),
            metadata={},
        )
        for turn in truth_data.dialogues[0].turns
        if turn.session == session
    }
    return facts.render_prompt(ShownConversation(turns, {memory.id: memory} if memory else {}))


def _memory(content: str, id_: str = _KNOWN_ID) -> Memory:
    known = [{"id": id_, "content": content, "occurred_at": "2026-03-01"}]
    shown = read_conversation({"id": "s", "when": "2026-03-01", "turns": [], "known": known})
    return shown.memories[id_]


def _facts(reply: str) -> dict[str, dict[str, Any]]:
    return {fact["content"]: fact for fact in json.loads(reply)["facts"]}


def test_a_fact_is_proposed_once_with_its_turns_and_quotes(truth_data: TruthData) -> None:
    proposer = Proposer(truth_data.dialogues)
    proposed = _facts(proposer.reply_to(_shown(truth_data, "tale-s1")))
    assert set(proposed) == {
        "The user lives in Vejle.",
        "The user's sister tunes pianos in Odense.",
        "The user tunes pianos in Odense.",
    }
    sister = proposed["The user's sister tunes pianos in Odense."]
    assert sister["sources"] == [["tale-s1", 2], ["tale-s1", 3]]
    assert sister["quotes"][1] == "My sister tunes pianos in Odense."
    assert _facts(proposer.reply_to(_shown(truth_data, "tale-s1"))) == {}


def test_a_closing_names_the_memory_that_is_shown(truth_data: TruthData) -> None:
    proposer = Proposer(truth_data.dialogues)
    known = _memory("The user lives in Vejle.")
    proposed = _facts(proposer.reply_to(_shown(truth_data, "tale-s2", known)))
    assert proposed["The user lives in Horsens now."]["of"] == _KNOWN_ID
    assert proposed["The user lives in Horsens now."]["relation"] == "changed"
    assert not proposer.impossible_closings


def test_a_closing_of_what_is_not_shown_is_proposed_as_new_and_noted(truth_data: TruthData) -> None:
    proposer = Proposer(truth_data.dialogues)
    proposed = _facts(proposer.reply_to(_shown(truth_data, "tale-s2")))
    assert proposed["The user lives in Horsens now."]["relation"] == "new"
    assert ("tale", "The user lives in Horsens now.") in proposer.impossible_closings


def test_a_note_gets_the_rewriting_that_is_set(truth_data: TruthData) -> None:
    proposer, note = Proposer(()), _memory(truth_data.rewrites[0].note)
    question = prompt.user_prompt(note, NotePart(note.content))
    assert json.loads(proposer.reply_to(question)) == {"memories": []}
    proposer.rewritings = {note.content: ("one", "two")}
    memories = json.loads(proposer.reply_to(question))["memories"]
    assert [memory["content"] for memory in memories] == ["one", "two"]


def test_memories_get_the_merge_that_is_set(truth_data: TruthData) -> None:
    (merge,) = truth_data.merges
    memories = [_memory(text, id_) for (text, _), id_ in zip(merge.memories, ("aa01", "bb02"), strict=True)]
    proposer, question = Proposer(()), "\n".join(consolidate._memory_lines(memories))
    assert proposer.reply_to(question) == "{}"
    proposer.merges = {frozenset(text for text, _ in merge.memories): merge.good}
    (saved,) = json.loads(proposer.reply_to(question))["toSave"]
    assert (saved["content"], sorted(saved["sourceIds"])) == (merge.good, ["aa01", "bb02"])
