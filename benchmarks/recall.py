"""Evidence recall through the HTTP API: `python -m benchmarks.recall --data SET.json [--embedder local]`.

Each conversation has its own tenant and user. There are two ways: `turns` adds them to sessions and
searches turns; `memories` saves every turn as a memory and searches memories. The measures count
whether the turns that contain the answer are returned; no model judges them. No data set is part of
the project.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import fmean, quantiles
from typing import Annotated, Any

import typer

from benchmarks import evidence, local_stack, machine, table
from benchmarks.evidence import Conversation, DataSet, Question, Ranking
from benchmarks.raw_http import Connection

LIMIT = 60
"""Number of results requested: enough to fill the largest budget with short turns."""
_BATCH = 200
_LONGEST_MEMORY = 15_800
_UPDATE = "knowledge_update"
TurnKey = tuple[str, int]


def main(
    data: Annotated[Path, typer.Option(exists=True, help="A data set (see evidence.py for its shape).")],
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
    way: Annotated[str, typer.Option(help="Comma-separated: turns, memories.")] = "turns,memories",
    strategy: Annotated[str, typer.Option(help="Comma-separated strategies, for memories.")] = "blend",
    limit_conversations: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Measure evidence recall and print a table."""
    data_set = evidence.read(data, limit_conversations)
    print(machine.describe())
    ways = [
        (way, name)
        for way in way.split(",")
        for name in (strategy.split(",") if way == "memories" else ["blend"])
    ]
    rows: list[list[str]] = []
    with local_stack.running(embedder) as running:
        keys = [running.key_of(f"bench-{place}") for place in range(len(data_set.conversations))]
        loaded_ways: set[str] = set()
        for through, chosen in ways:
            rankings = asyncio.run(
                _through(running.url, keys, data_set, through, chosen, load=through not in loaded_ways)
            )
            loaded_ways.add(through)
            rows += _rows(data_set, f"{through}, {chosen}", rankings)
    print(f"{data_set.name}: {_size(data_set)}; embedder: {embedder or 'none'}\n")
    table.show(_HEAD, rows)


def _size(data_set: DataSet) -> str:
    turns = sum(len(conversation.turns) for conversation in data_set.conversations)
    questions = sum(len(conversation.questions) for conversation in data_set.conversations)
    return f"{len(data_set.conversations)} conversations, {turns} turns, {questions} questions with evidence"


async def _through(
    url: str, keys: list[str], data_set: DataSet, way: str, strategy: str, *, load: bool
) -> list[Ranking]:
    rankings: list[Ranking] = []
    for key, conversation in zip(keys, data_set.conversations, strict=True):
        async with connected(url, key) as connection:
            if load:
                await LOAD[way](connection, conversation)
                await connection.settled()
            rankings += [
                await ask(connection, conversation, question, way, strategy)
                for question in conversation.questions
            ]
    return rankings


@asynccontextmanager
async def connected(url: str, key: str) -> AsyncIterator[Connection]:
    """Open a connection to a gateway, with a key."""
    connection = Connection(url, key)
    try:
        yield connection
    finally:
        await connection.close()


async def _load_turns(connection: Connection, conversation: Conversation) -> None:
    for session in dict.fromkeys(turn.session for turn in conversation.turns):
        await connection.send("POST", "/v1/sessions", {"id": session, "user_id": conversation.id})
        turns = [
            {"role": turn.role, "speaker": turn.speaker, "content": turn.text, "created_at": turn.at}
            for turn in conversation.turns
            if turn.session == session
        ]
        for start in range(0, len(turns), _BATCH):
            batch = {"turns": turns[start : start + _BATCH]}
            _require_all_saved(
                await connection.send("POST", f"/v1/sessions/{session}/turns/batch", batch), "seq"
            )


async def _load_memories(connection: Connection, conversation: Conversation) -> None:
    memories = [
        {
            "content": f"{turn.speaker}: {part}",
            "occurred_at": turn.at,
            "user_id": conversation.id,
            "source": {
                "session_id": turn.session,
                "seq": turn.seq,
                "speaker": turn.speaker,
                "role": turn.role,
            },
        }
        for turn in conversation.turns
        for part in _parts(turn.text)
    ]
    for start in range(0, len(memories), _BATCH):
        batch = {"memories": memories[start : start + _BATCH]}
        _require_all_saved(await connection.send("POST", "/v1/memories/batch", batch), "id")


LOAD = {"turns": _load_turns, "memories": _load_memories}


def _parts(text: str) -> list[str]:
    return [text[start : start + _LONGEST_MEMORY] for start in range(0, len(text), _LONGEST_MEMORY)]


def _require_all_saved(answer: Any, field: str) -> None:
    refused = [result for result in answer["results"] if field not in result]
    if refused:
        raise SystemExit(f"refused while loading: {refused[0]}")


async def ask(
    connection: Connection,
    conversation: Conversation,
    question: Question,
    way: str,
    strategy: str,
    **more: Any,
) -> Ranking:
    """Ask a question of a conversation; `more` is added to the body of the search."""
    body: dict[str, Any] = {"query": question.text, "user_id": conversation.id, "limit": LIMIT, **more}
    if way == "memories":
        body["strategy"] = strategy
    started = time.perf_counter()
    answer = await connection.send("POST", f"/v1/{way}/search", body)
    elapsed = (time.perf_counter() - started) * 1000
    if answer["degraded"]:
        raise SystemExit(f"a search was degraded: {answer['degraded']}")
    return ranking(conversation, question, answer["results"], elapsed)


def ranking(
    conversation: Conversation, question: Question, results: list[dict[str, Any]], elapsed: float
) -> Ranking:
    """Return which turns the results of a question stand for, and what of them is foreign."""
    own = {(turn.session, turn.seq): turn.id for turn in conversation.turns}
    used, foreign, reached = 0, 0, dict[str, int]()
    for result in results:
        used += len(result["content"])
        turn_keys = _turn_keys(result)
        foreign += any(key not in own for key in turn_keys)
        for key in turn_keys:
            reached.setdefault(own.get(key, f"foreign {key}"), used)
    spoken_order = [turn.id for turn in conversation.turns]
    update = question.kind == _UPDATE
    latest = evidence.latest_first(list(reached), question.gold, spoken_order) if update else None
    return Ranking(question, list(reached), list(reached.values()), latest, foreign, elapsed)


def _turn_keys(result: dict[str, Any]) -> list[TurnKey]:
    """Return the turn keys of a result. A memory that was saved twice has two."""
    return [(source["session_id"], source["seq"]) for source in result.get("sources", [result])]


_MEASURES = (
    "R@5",
    "R@10",
    "hit@5",
    "all@10",
    "nDCG@10",
    "MRR",
    *(f"R {budget} chars" for budget in evidence.BUDGETS),
)
_HEAD = ("way", "questions", *_MEASURES, "R@10 95 %", "latest first", "foreign", "p50 ms", "p95 ms")


def _rows(data_set: DataSet, name: str, rankings: list[Ranking]) -> list[list[str]]:
    main = [ranking for ranking in rankings if ranking.question.kind in data_set.main]
    return [_row(f"{name}, main types", main), _row(f"{name}, all types", rankings)]


def _row(name: str, rankings: list[Ranking]) -> list[str]:
    measured = [evidence.measures(ranking) for ranking in rankings]
    low, high = evidence.interval([values["R@10"] for values in measured])
    latest = [ranking.latest_first for ranking in rankings if ranking.latest_first is not None]
    cuts = quantiles([ranking.milliseconds for ranking in rankings], n=20)
    return [
        name,
        str(len(rankings)),
        *(f"{100 * fmean(values[measure] for values in measured):.1f}" for measure in _MEASURES),
        f"{100 * low:.1f}-{100 * high:.1f}",
        f"{sum(latest)}/{len(latest)}" if latest else "-",
        str(sum(ranking.foreign for ranking in rankings)),
        f"{cuts[9]:.1f}",
        f"{cuts[18]:.1f}",
    ]


if __name__ == "__main__":
    typer.run(main)
