"""How much of a session's prompts a prefix cache would serve: `python -m benchmarks.prompt_cache`.

A provider's prompt cache serves the part of a prompt with which an earlier one began. One session is played
on a stack of its own: a message, its context, a reply, and so on, while memories are saved and working
memory changes. Of each context it is counted how many bytes it has in common with the beginning of the one
before, in messages and in what each says; tokens are a fourth of the bytes. Nothing but `messages` is
read, so the script measures an older version as well, if it is copied into its tree.
"""

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import httpx
import typer

from benchmarks import local_stack, machine, table
from benchmarks.corpus import Corpus

_MEMORIES, _NOTES = 500, 10
_SYSTEM = "You are the assistant of a small company. Answer briefly, and say so when you do not know. " * 4
Messages = list[dict[str, str]]


def main(
    turns: Annotated[int, typer.Option(help="Messages of the user; the agent replies to each.")] = 100,
    max_tokens: Annotated[int | None, typer.Option(help="The budget of each context.")] = None,
) -> None:
    """Play a session on a stack of its own, and print the shares."""
    print(machine.describe())
    with local_stack.running(dream_enabled=False) as running:
        contexts = asyncio.run(_play(running.url, running.key, turns, max_tokens))
    head = ("prompts", "tokens", "served by a prefix cache", "share", "prompts that share half or more")
    table.show(head, [_row(contexts)])


def _row(contexts: Sequence[Messages]) -> list[str]:
    sizes = [len(_text(context)) // 4 for context in contexts]
    shared = [0, *(_common(_text(first), _text(second)) // 4 for first, second in pairwise(contexts))]
    halves = sum(2 * part >= size for part, size in zip(shared, sizes, strict=True))
    share = f"{100 * sum(shared) / sum(sizes):.0f} %"
    return [str(len(contexts)), str(sum(sizes)), str(sum(shared)), share, str(halves)]


def _text(messages: Messages) -> bytes:
    return "\n".join(json.dumps(message, ensure_ascii=False) for message in messages).encode()


def _common(first: bytes, second: bytes) -> int:
    """Return how many bytes two texts have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(first), len(second)))


async def _play(url: str, key: str, turns: int, max_tokens: int | None) -> list[Messages]:
    facts = Corpus(seed=7)
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        await _send(client, "/v1/memories/batch", {"memories": facts.memories(_MEMORIES)})
        session_id = (await _send(client, "/v1/sessions", {}))["id"]
        return [await _take_turn(client, session_id, facts, n, max_tokens) for n in range(turns)]


async def _take_turn(
    client: httpx.AsyncClient, session_id: str, facts: Corpus, number: int, max_tokens: int | None
) -> Messages:
    """Save something, ask with its context, reply; return the messages of the context."""
    said, replied, noted = (" ".join(fact["content"] for fact in facts.memories(3)) for _ in range(3))
    await _send(client, "/v1/memories", facts.memory())
    entry = {"value": noted, "ttl_seconds": 600}
    await client.put(f"/v1/working/session/{session_id}/note-{number % _NOTES}", json=entry)
    body = {"message": f"{said} {facts.message()}", "system": _SYSTEM, "max_tokens": max_tokens}
    context = await _send(client, f"/v1/sessions/{session_id}/context", body)
    reply = {"role": "assistant", "content": replied}
    await _send(client, f"/v1/sessions/{session_id}/turns", reply)
    return list(context["messages"])


async def _send(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = await client.post(path, json=body)
    response.raise_for_status()
    return dict(response.json())


if __name__ == "__main__":
    typer.run(main)
