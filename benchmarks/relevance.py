"""Does a search find nothing when there is nothing to find? `python -m benchmarks.relevance --data SET.json`.

Each question is asked of its own conversation, which has the answer, and of another one, drawn with a fixed
seed, which has not. Counted is how often the first finds something and the second nothing. The recall
of the evidence is compared with that of a search without a floor (`min_similarity: -1`).
"""

import asyncio
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, quantiles
from typing import Annotated

import typer

from benchmarks import evidence, local_stack, machine, recall, table
from benchmarks.evidence import Conversation, DataSet, Ranking
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection
from shared.foundation.stages import RecordKind
from shared.platform.resources import open_resources
from shared.search.index import floors, generations

_SEED = 0
_CACHE_SECONDS = 3.0
"""Gateways cache the live generation, and its floor, for less than this."""
_KINDS = {"memories": RecordKind.MEMORY, "turns": RecordKind.TURN}


@dataclass(slots=True)
class Answers:
    """The rankings of one way: of a question's own conversation, the same without floor, of another one."""

    own: list[Ranking] = field(default_factory=list)
    unlimited: list[Ranking] = field(default_factory=list)
    foreign: list[Ranking] = field(default_factory=list)


def main(
    data: Annotated[Path, typer.Option(exists=True, help="A data set (see evidence.py for its shape).")],
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
    way: Annotated[str, typer.Option(help="Comma-separated: memories, turns.")] = "memories",
    strategy: Annotated[str, typer.Option(help="The strategy, for memories.")] = "blend",
    every: Annotated[int, typer.Option(min=1, help="Ask only every so many-th question.")] = 1,
) -> None:
    """Measure relevance and print a table."""
    data_set = _thin_out(evidence.read(data), every)
    print(machine.describe())
    rows: list[list[str]] = []
    with local_stack.running(embedder) as running:
        keys = [running.key_of(f"bench-{place}") for place in range(len(data_set.conversations))]
        for through in way.split(","):
            floor, answers = asyncio.run(_measure(running, keys, data_set, through, strategy))
            rows.append(_row(through, floor, answers))
    print(f"{data_set.name}, questions of the main types; embedder: {embedder or 'none'}\n")
    table.show(_HEAD, rows)


def _thin_out(data_set: DataSet, every: int) -> DataSet:
    """Return a data set with every so many-th question of the main types."""
    conversations = []
    for conversation in data_set.conversations:
        main = [question for question in conversation.questions if question.kind in data_set.main]
        conversations.append(replace(conversation, questions=main[::every]))
    return replace(data_set, conversations=conversations)


async def _measure(
    running: BenchmarkStack, keys: list[str], data_set: DataSet, way: str, strategy: str
) -> tuple[float | None, Answers]:
    for key, conversation in zip(keys, data_set.conversations, strict=True):
        async with recall.connected(running.url, key) as connection:
            await recall.LOAD[way](connection, conversation)
            await connection.settled()
    floor = await _learn(running, _KINDS[way])
    await asyncio.sleep(_CACHE_SECONDS)
    draw, answers = random.Random(_SEED), Answers()
    connections = [Connection(running.url, key) for key in keys]
    pairs = list(zip(connections, data_set.conversations, strict=True))
    for own in pairs:
        await _ask_all(
            own, [other for other in pairs if other is not own], data_set, draw, answers, way, strategy
        )
    for connection in connections:
        await connection.close()
    return floor, answers


async def _learn(running: BenchmarkStack, kind: RecordKind) -> float | None:
    """Learn the floors now, as the sweep does, and return the floor of a kind."""
    async with open_resources(running.settings) as resources:
        async with resources.postgres.across_tenants() as connection:
            all_generations = await generations.list_generations(connection)
        for generation in all_generations:
            await floors.learn_if_due(resources.postgres, resources.qdrant, generation)
        async with resources.postgres.across_tenants() as connection:
            live = await generations.get_live(connection, kind)
    return live.cosine_floor if live else None


async def _ask_all(
    own: tuple[Connection, Conversation],
    others: list[tuple[Connection, Conversation]],
    data_set: DataSet,
    draw: random.Random,
    answers: Answers,
    way: str,
    strategy: str,
) -> None:
    for question in own[1].questions:
        if question.kind not in data_set.main:
            continue
        answers.own.append(await recall.ask(*own, question, way, strategy))
        if way == "memories":
            answers.unlimited.append(await recall.ask(*own, question, way, strategy, min_similarity=-1))
        # Its evidence is not in the other conversation, so no measure of order is made.
        unanswered = replace(question, kind="unanswered")
        answers.foreign.append(await recall.ask(*draw.choice(others), unanswered, way, strategy))


_HEAD = ("way", "questions", "floor", "own: found", "other: none", "R@10", "R@10 without", "p50 ms", "p95 ms")


def _row(way: str, floor: float | None, answers: Answers) -> list[str]:
    cuts = quantiles([ranking.milliseconds for ranking in answers.own], n=20)
    return [
        way,
        str(len(answers.own)),
        "-" if floor is None else f"{floor:.2f}",
        f"{100 * fmean(bool(ranking.turns) for ranking in answers.own):.1f} %",
        f"{100 * fmean(not ranking.turns for ranking in answers.foreign):.1f} %",
        _recall(answers.own),
        _recall(answers.unlimited) if answers.unlimited else "-",
        f"{cuts[9]:.1f}",
        f"{cuts[18]:.1f}",
    ]


def _recall(rankings: list[Ranking]) -> str:
    return f"{100 * fmean(evidence.measures(ranking)['R@10'] for ranking in rankings):.1f}"


if __name__ == "__main__":
    typer.run(main)
