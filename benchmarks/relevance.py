"""Does a context recall nothing if nothing is relevant? `python -m benchmarks.relevance --data SET.json`.

Each question is asked of its own conversation, which has the answer, and of another one, drawn with a fixed
seed, which has not. Counted is how often the first finds something and the second nothing. The recall
of the evidence is compared with that of a search without a floor (`min_similarity: -1`). An explicit
search has no floor, so the searches are those that a context makes, in this process.
"""

import asyncio
import random
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, quantiles
from typing import Annotated, Any

import typer

from benchmarks import evidence, local_stack, machine, recall, table
from benchmarks.evidence import Conversation, DataSet, Question, Ranking
from benchmarks.local_stack import BenchmarkStack
from shared.conversation.turns import search as turn_search
from shared.conversation.turns.search import TurnFilters
from shared.foundation.scope import Scope
from shared.foundation.stages import RecordKind
from shared.memory.longterm import search as memory_search
from shared.memory.longterm.filters import MemoryFilters
from shared.memory.longterm.search import SearchOptions
from shared.platform.resources import Resources, open_resources
from shared.search.index import floors, generations

_SEED = 0
_TENANT = "bench-{}"
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
        keys = [running.key_of(_TENANT.format(place)) for place in range(len(data_set.conversations))]
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
    async with open_resources(running.settings) as resources:
        floor = await _learn(resources, _KINDS[way])
        answers = await _ask_all(_Contexts(resources, way, strategy), data_set)
    return floor, answers


async def _learn(resources: Resources, kind: RecordKind) -> float | None:
    """Learn the floors now, as the sweep does, and return the floor of a kind."""
    async with resources.postgres.across_tenants() as tx:
        all_generations = await generations.list_generations(tx)
    for generation in all_generations:
        await floors.learn_if_due(resources.postgres, resources.qdrant, generation)
    async with resources.postgres.across_tenants() as tx:
        live = await generations.get_live(tx, kind)
    return live.cosine_floor if live else None


async def _ask_all(contexts: "_Contexts", data_set: DataSet) -> Answers:
    draw, answers = random.Random(_SEED), Answers()
    pairs = list(enumerate(data_set.conversations))
    for own in pairs:
        others = [other for other in pairs if other is not own]
        for question in own[1].questions:
            if question.kind not in data_set.main:
                continue
            answers.own.append(await contexts.ask(*own, question))
            if contexts.way == "memories":
                answers.unlimited.append(await contexts.ask(*own, question, min_similarity=-1))
            # Its evidence is not in the other conversation, so no measure of order is made.
            unanswered = replace(question, kind="unanswered")
            answers.foreign.append(await contexts.ask(*draw.choice(others), unanswered))
    return answers


@dataclass(frozen=True, slots=True)
class _Contexts:
    """The searches that contexts make, through memories or past turns."""

    resources: Resources
    way: str
    strategy: str

    async def ask(
        self,
        place: int,
        conversation: Conversation,
        question: Question,
        min_similarity: float | None = None,
    ) -> Ranking:
        """Ask a question of the conversation at this place of the data set."""
        scope = Scope(_TENANT.format(place), user_id=conversation.id)
        started = time.perf_counter()
        results = await self._search(scope, question.text, min_similarity)
        elapsed = (time.perf_counter() - started) * 1000
        return recall.ranking(conversation, question, results, elapsed)

    async def _search(self, scope: Scope, text: str, min_similarity: float | None) -> list[dict[str, Any]]:
        if self.way == "turns":
            turns = await turn_search.search(
                self.resources, scope, text, TurnFilters(), recall.LIMIT, above_floor=True
            )
            _require_whole(turns.degraded)
            return [turn.model_dump() for turn, _ in turns.results]
        options = SearchOptions(recall.LIMIT, self.strategy, min_similarity, above_floor=True)
        found = await memory_search.search(self.resources, scope, text, MemoryFilters(), options)
        _require_whole(found.degraded)
        return [result.memory.model_dump() for result in found.results]


def _require_whole(degraded: list[str]) -> None:
    if degraded:
        raise SystemExit(f"a search was degraded: {degraded}")


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
