"""Does the newer of two results that contradict each other stand first? `python -m benchmarks.latest`.

Without an option, the labelled pairs are scored. With `--data SET.json`, the questions of a data set are
asked through the HTTP API, as in `recall`, and the order is compared with the one by each result's own score,
which was before: by halves of the conversations.
"""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from benchmarks import evidence, local_stack, machine, recall, table
from benchmarks.evidence import Conversation, DataSet, Ranking
from benchmarks.raw_http import Connection
from tests.unit.index import labelled_pairs
from tests.unit.index.labelled_pairs import Half, Label

_Both = tuple[Ranking, Ranking]
"""The ranking of a question before and after the newer results were put first."""


def main(
    data: Annotated[Path | None, typer.Option(exists=True, help="A data set (see evidence.py).")] = None,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
    way: Annotated[str, typer.Option(help="Comma-separated: turns, memories.")] = "turns,memories",
) -> None:
    """Score the labelled pairs, or a data set, and print a table."""
    if data is None:
        table.show(("half", *Label, "reordered rightly"), [_pairs_row(half) for half in Half])
        return
    data_set = evidence.read(data)
    print(machine.describe())
    rows: list[list[str]] = []
    with local_stack.running(embedder) as running:
        keys = [running.key_of(f"bench-{place}") for place in range(len(data_set.conversations))]
        for through in way.split(","):
            rows += _rows(through, data_set, asyncio.run(_through(running.url, keys, data_set, through)))
    print(f"{data_set.name}; embedder: {embedder or 'none'}; before / after\n")
    table.show(_HEAD, rows)


def _pairs_row(half: Half) -> list[str]:
    pairs = [pair for pair in labelled_pairs.read() if pair.half is half]
    counts = {label: [pair.is_reordered() for pair in pairs if pair.label is label] for label in Label}
    reordered = sum(map(sum, counts.values()))
    rightly = sum(counts[Label.SAME_ATTRIBUTE]) / max(1, reordered)
    cells = [f"{sum(counts[label])} of {len(counts[label])}" for label in Label]
    return [half.value, *cells, f"{100 * rightly:.1f} %"]


async def _through(url: str, keys: list[str], data_set: DataSet, way: str) -> list[list[_Both]]:
    """Return the rankings of every question, by conversation."""
    rankings: list[list[_Both]] = []
    for key, conversation in zip(keys, data_set.conversations, strict=True):
        async with recall.connected(url, key) as connection:
            await recall.LOAD[way](connection, conversation)
            await connection.settled()
            rankings.append([both async for both in _ask(connection, conversation, way)])
    return rankings


async def _ask(connection: Connection, conversation: Conversation, way: str) -> Any:
    for question in conversation.questions:
        body = {"query": question.text, "user_id": conversation.id, "limit": recall.LIMIT, "explain": True}
        answer = await connection.send("POST", f"/v1/{way}/search", body)
        results = answer["results"]
        before = sorted(results, key=lambda result: -result["scores"]["score"])
        yield tuple(recall.ranking(conversation, question, order, 0.0) for order in (before, results))


_HEAD = ("way", "conversations", "questions", "moved", "R@10", "nDCG@10", "latest first", "foreign")


def _rows(way: str, data_set: DataSet, rankings: Sequence[Sequence[_Both]]) -> Iterator[list[str]]:
    half = len(rankings) // 2
    for first, last in ((0, half), (half, len(rankings)), (0, len(rankings))):
        asked = [both for of_conversation in rankings[first:last] for both in of_conversation]
        main = [both for both in asked if both[0].question.kind in data_set.main]
        yield _row(f"{way}, all types", f"{first + 1}-{last}", asked)
        if len(main) < len(asked):
            yield _row(f"{way}, main types", f"{first + 1}-{last}", main)


def _row(name: str, conversations: str, asked: Sequence[_Both]) -> list[str]:
    before, after = ([both[i] for both in asked] for i in (0, 1))
    moved = sum(first.turns != second.turns for first, second in asked)
    return [
        name,
        conversations,
        str(len(asked)),
        str(moved),
        *(f"{_mean(before, measure)} / {_mean(after, measure)}" for measure in ("R@10", "nDCG@10")),
        f"{_latest(before)} / {_latest(after)}",
        str(sum(ranking.foreign for ranking in after)),
    ]


def _mean(rankings: Sequence[Ranking], measure: str) -> str:
    return f"{100 * fmean(evidence.measures(ranking)[measure] for ranking in rankings):.2f}"


def _latest(rankings: Sequence[Ranking]) -> str:
    latest = [ranking.latest_first for ranking in rankings if ranking.latest_first is not None]
    return f"{sum(latest)} of {len(latest)}"


if __name__ == "__main__":
    typer.run(main)
