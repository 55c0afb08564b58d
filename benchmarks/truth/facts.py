"""The facts of the dialogues: each session is reported and mined, the next one after it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable

from benchmarks.truth.data import Dialogue, Json
from benchmarks.truth.gateway import Gateway
from benchmarks.truth.outcome import Ending, Outcome, Scope
from benchmarks.truth.proposer import Proposer

PART = "facts"


async def measure(gateway: Gateway, proposer: Proposer, dialogues: Iterable[Dialogue]) -> list[Outcome]:
    """Return what became of all facts. Each dialogue is a user of its own; all run beside one another."""
    dialogues = list(dialogues)
    codes = await asyncio.gather(*(_mine(gateway, dialogue) for dialogue in dialogues))
    await gateway.settle()
    outcomes: list[Outcome] = []
    for dialogue, codes_by_text in zip(dialogues, codes, strict=True):
        outcomes += await _read(gateway, proposer, dialogue, codes_by_text)
    return outcomes


async def _mine(gateway: Gateway, dialogue: Dialogue) -> dict[str, list[str]]:
    """Mine the sessions of a dialogue. Return the codes of refusals by the text that was refused."""
    codes: dict[str, list[str]] = defaultdict(list)
    for session in dict.fromkeys(turn.session for turn in dialogue.turns):
        turns = [turn for turn in dialogue.turns if turn.session == session]
        await gateway.add_turns(dialogue.id, session, turns)
        run = await gateway.finished_run(await gateway.send("POST", f"/v1/sessions/{session}/mine"))
        for text, code in _refusals(run):
            codes[text].append(code)
    return codes


def _refusals(run: Json) -> list[tuple[str, str]]:
    return [
        (pass_["proposed"][rejection["index"]]["content"], rejection["code"])
        for pass_ in run["passes"]
        for rejection in pass_["rejections"]
        if isinstance(rejection.get("index"), int) and rejection["index"] < len(pass_["proposed"] or ())
    ]


async def _read(
    gateway: Gateway, proposer: Proposer, dialogue: Dialogue, codes: dict[str, list[str]]
) -> list[Outcome]:
    scope = Scope(await gateway.memories(dialogue.id), await gateway.proposals(dialogue.id))
    outcomes: list[Outcome] = []
    for fact in dialogue.facts:
        ending = scope.ending(fact.text, fact.closes)
        if (dialogue.id, fact.text) in proposer.impossible_closings and ending is not Ending.CLOSED:
            ending = Ending.NOT_POSSIBLE
        fate = scope.fate([fact.text])
        found_codes = tuple(dict.fromkeys(codes.get(fact.text, ())))
        outcomes.append(
            Outcome(PART, dialogue.id, dialogue.lang, fact.text, fact.why, fate, ending, found_codes)
        )
    return outcomes
