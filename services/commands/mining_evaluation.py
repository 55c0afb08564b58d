"""Ask a given model for the facts of labelled conversations, and measure what would be stored."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from services.commands.mining_score import ConversationScore, MiningScore, score_conversation
from shared.conversation.turns.turn import Turn
from shared.dreams.passes import facts, reply_schemas
from shared.dreams.verification.fact_check import Fact, ShownConversation
from shared.dreams.verification.rejection import RejectionCode
from shared.foundation import config, errors
from shared.foundation.roles import Role
from shared.foundation.stages import MemoryState
from shared.infra.language_model import LanguageModel, open_language_model
from shared.memory.longterm.memory import Memory
from shared.platform.directives import files

EXAMPLE = Path(__file__).parents[2] / "examples" / "mining" / "conversations.jsonl"
_ROLES = {"u": Role.USER, "a": Role.ASSISTANT}
console = Console(highlight=False)
Json = dict[str, Any]


def evaluate(endpoint: str, model: str, example: Path | None) -> None:
    """Print precision, recall and wrong closings, and what was refused, by reason."""
    conversations = list(read_lines(example or EXAMPLE))
    settings = config.load(llm_base_url=endpoint, llm_model=model, llm_timeout=300)
    console.print(f"{model} at {endpoint} reads {len(conversations)} conversations …")
    score, rejections = asyncio.run(_ask_about_all(settings, conversations))
    console.print(f"\nfacts stored: {score.right} right, {score.wrong} wrong; {score.missed} missed")
    console.print(f"precision {score.precision:.2f}, recall {score.recall:.2f}")
    console.print(f"wrongly closed memories: {score.wrongly_closed}")
    refused = ", ".join(f"{count} {code}" for code, count in sorted(rejections.items())) or "none"
    console.print(f"refused by the checks: {refused}")


def read_lines(path: Path) -> Iterator[Json]:
    """Yield labelled conversations. Raises errors.Invalid for a file that can't be read as them."""
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)
    except (OSError, ValueError):
        raise errors.Invalid(str(path), "can't be read as lines of JSON") from None


async def _ask_about_all(
    settings: config.Settings, conversations: list[Json]
) -> tuple[MiningScore, Counter[str]]:
    model = open_language_model(settings)
    if model is None:
        raise errors.Invalid("endpoint", "must be the base URL of a model")
    directive = files.read_file(settings, "default", facts.DIRECTIVE).text
    scores: dict[str, ConversationScore] = {}
    rejections: Counter[str] = Counter()
    try:
        for conversation in conversations:
            found, codes = await _ask_about(model, directive, read_conversation(conversation))
            scores[conversation["id"]] = score_conversation(conversation, found)
            _print_conversation(conversation["id"], scores[conversation["id"]], codes)
            rejections.update(codes)
    finally:
        await model.close()
    return MiningScore(scores), rejections


async def _ask_about(
    model: LanguageModel, directive: str, shown: ShownConversation
) -> tuple[Sequence[Fact], list[str]]:
    """Return which facts of the model's reply may be stored, and why nothing else of it.

    The model is asked once. Raises errors.Unavailable if it is away, and not only slow about this one.
    """
    schema = reply_schemas.BY_DIRECTIVE[facts.DIRECTIVE]
    try:
        reply = await model.complete(directive, facts.render_prompt(shown), schema)
        checked = facts.read_reply(reply.text, shown)[1]
    except errors.CutOffReply:
        return (), [RejectionCode.CUT_OFF.value]
    except errors.InvalidModelReply:
        return (), [RejectionCode.UNUSABLE_REPLY.value]
    except errors.Unavailable as error:
        if not error.may_have_run:
            raise
        return (), ["no_answer"]
    return checked.facts, [rejection.code.value for rejection in checked.rejections]


def read_conversation(conversation: Json) -> ShownConversation:
    """Return a labelled conversation as the model is shown it."""
    said_at = _noon(conversation["when"])
    turns = [
        _turn(conversation["id"], seq, line, said_at)
        for seq, line in enumerate(conversation["turns"], start=1)
    ]
    known = [_memory(item) for item in conversation.get("known", ())]
    return ShownConversation(
        {(turn.session_id, turn.seq): turn for turn in turns}, {memory.id: memory for memory in known}
    )


def _turn(session_id: str, seq: int, line: str, said_at: datetime) -> Turn:
    role, _, content = line.partition(": ")
    return Turn(
        session_id=session_id,
        seq=seq,
        role=_ROLES[role],
        speaker=None,
        content=content,
        created_at=said_at,
        metadata={},
    )


def _memory(item: Json) -> Memory:
    at = _noon(item["occurred_at"])
    empty: Json = {"tags": [], "sources": [], "superseded_by": [], "derived_from": [], "metadata": {}}
    open_fields = dict.fromkeys(
        name for name, field in Memory.model_fields.items() if field.is_required() and name not in empty
    )
    values = {"importance": 0.5, "state": MemoryState.FINAL, "reinforcement_count": 1, "agent_id": "default"}
    times = {"occurred_at": at, "created_at": at, "last_seen_at": at}
    versions = {"tenant": "default", "version": 1, "content_version": 1, "namespace": ""}
    fields = {**open_fields, **empty, **values, **times, **versions}
    return Memory.model_validate(fields | {"id": item["id"], "content": item["content"]})


def _noon(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)


def _print_conversation(id_: str, score: ConversationScore, codes: Sequence[str]) -> None:
    refused = f"; refused: {', '.join(codes)}" if codes else ""
    counts = f"{score.right} right, {len(score.missed)} missed, {len(score.wrong)} wrong"
    console.print(f"  {id_:<16} {counts}{refused}")
    for name in ("wrong", "missed", "wrongly_closed"):
        for content in getattr(score, name):
            console.print(f"    {name.replace('_', ' ')}: {content}")
