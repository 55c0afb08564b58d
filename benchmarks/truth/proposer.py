"""What the stand-in for a language model answers: the right and the wrong texts of the data.

It knows what it is asked by the form of the prompt, as an operator may replace any directive. Of a dialogue
it proposes each text once, as soon as the last of its sources was shown, with those of its sources that are
shown in this prompt and their whole text as the quote. It closes only a memory that the prompt shows. A note
and a scope of memories are answered with the variant that is set before they are saved. A second question
about the same gets the same answer.
"""

import json
import re
import threading
from collections.abc import Iterable, Mapping

from benchmarks.truth.data import Dialogue, DialogueTurn, Json, ProposedText
from shared.foundation.prompt_safety import single_line

_SESSION = "## Session: "
_TURN = re.compile(r"^(?:\(read before\) )?\[(\d+)\] \d{4}-")
_KNOWN = re.compile(r"^- \[ID:([0-9a-f]+)\] (.+) \(since ", re.MULTILINE)
_OFFERED = re.compile(r"^\d+\. \[ID:([0-9a-f]+)\] .*\n   (.+)$", re.MULTILINE)
_NOTHING = "{}"
TurnKey = tuple[str, int]


class Proposer:
    """Answers prompts. It is asked by several threads at once."""

    def __init__(self, dialogues: Iterable[Dialogue]) -> None:
        self._dialogues = {turn.session: dialogue for dialogue in dialogues for turn in dialogue.turns}
        self._shown: set[TurnKey] = set()
        self._proposed: set[tuple[str, str]] = set()
        self.impossible_closings: set[tuple[str, str]] = set()
        """Dialogue id and text of each fact whose earlier one was not among the known memories."""
        self.rewritings: Mapping[str, tuple[str, ...]] = {}
        """By note, the texts to answer with."""
        self.merges: Mapping[frozenset[str], str] = {}
        """By the texts of the memories, the text that is to replace them."""
        self._lock = threading.Lock()

    def reply_to(self, prompt: str) -> str:
        """Return the answer to a user message; an empty object to what is not asked about the data."""
        with self._lock:
            if _SESSION in prompt:
                return self._facts(prompt)
            if prompt.startswith("{"):
                return self._rewriting(json.loads(prompt))
            return self._merge(prompt)

    def _facts(self, prompt: str) -> str:
        shown = _turn_keys(prompt)
        self._shown |= set(shown)
        known_ids = {text: id_ for id_, text in _KNOWN.findall(prompt)}
        dialogues = {
            dialogue.id: dialogue
            for session, _ in shown
            if (dialogue := self._dialogues.get(session)) is not None
        }
        facts = [
            _fact(fact, _sources(fact, dialogue, shown), self._closed_id(fact, dialogue, known_ids))
            for dialogue in dialogues.values()
            for fact in self._take_due(dialogue)
        ]
        return json.dumps({"facts": facts}, ensure_ascii=False)

    def _take_due(self, dialogue: Dialogue) -> list[ProposedText]:
        """Return what was not proposed yet and whose sources were all shown, and note it as proposed."""
        keys = [(turn.session, turn.seq) for turn in dialogue.turns]
        due = [
            fact
            for fact in dialogue.facts
            if (dialogue.id, fact.text) not in self._proposed
            and self._shown.issuperset(keys[position] for position in fact.sources)
        ]
        self._proposed |= {(dialogue.id, fact.text) for fact in due}
        return due

    def _closed_id(self, fact: ProposedText, dialogue: Dialogue, known_ids: Mapping[str, str]) -> str | None:
        closed_id = None if fact.closes is None else known_ids.get(single_line(fact.closes))
        if fact.closes is not None and closed_id is None:
            self.impossible_closings.add((dialogue.id, fact.text))
        return closed_id

    def _rewriting(self, note: Json) -> str:
        texts = self.rewritings.get(str(note.get("content")), ())
        memories: list[Json] = [
            {"content": text, "category": None, "tags": [], "importance": 0.5} for text in texts
        ]
        return json.dumps({"memories": memories}, ensure_ascii=False)

    def _merge(self, prompt: str) -> str:
        ids_by_text = {text: id_ for id_, text in _OFFERED.findall(prompt)}
        content = self.merges.get(frozenset(ids_by_text))
        if content is None:
            return _NOTHING
        ids = list(ids_by_text.values())
        merge = {"content": content, "category": None, "tags": [], "sourceIds": ids}
        deletions = [{"id": id_, "reason": "duplicate"} for id_ in ids]
        return json.dumps({"toDelete": deletions, "toSave": [merge]}, ensure_ascii=False)


def _turn_keys(prompt: str) -> list[TurnKey]:
    keys: list[TurnKey] = []
    session = ""
    for line in prompt.splitlines():
        if line.startswith(_SESSION):
            session = line.removeprefix(_SESSION)
        elif session and (match := _TURN.match(line)):
            keys.append((session, int(match[1])))
    return keys


def _sources(fact: ProposedText, dialogue: Dialogue, shown: list[TurnKey]) -> list[DialogueTurn]:
    turns = [dialogue.turns[position] for position in fact.sources]
    return [turn for turn in turns if (turn.session, turn.seq) in shown]


def _fact(fact: ProposedText, sources: list[DialogueTurn], closed_id: str | None) -> Json:
    return {
        "content": fact.text,
        "category": None,
        "tags": [],
        "relation": "new" if closed_id is None else "changed",
        "of": closed_id,
        "sources": [[turn.session, turn.seq] for turn in sources],
        "quotes": [turn.text for turn in sources],
    }
