"""Run `python -m benchmarks`: list the benchmarks and run a short form of each.

Recall needs a data set, which is not part of the project: without `--data` only speed is measured.
"""

from pathlib import Path
from typing import Annotated

import typer

from benchmarks import prompt_cache, recall, turn

_LIST = """Loci's benchmarks; each has --help:

  python -m benchmarks.turn      speed of contexts, searches and saves, compared with the databases alone
  python -m benchmarks.scale     enrichment's throughput while workers are started and stopped
  python -m benchmarks.erasure   how long it takes to erase a user, and until nothing of them is left
  python -m benchmarks.footprint memory of each process of `loci up`, its start, and the time of `loci --help`
  python -m benchmarks.worker_cost  processor time of a worker per memory, beside that of another commit
  python -m benchmarks.prompt_cache  how much of a session's prompts a provider's prompt cache would serve
  python -m benchmarks.preferences how long it takes to find which of a user's preferences apply
  python -m benchmarks.graph     how long it takes to find a message's entities among 100 000
  python -m benchmarks.relevance how often a search finds nothing, when it should and when it should not
  python -m benchmarks.recall    evidence recall over HTTP on a data set (--data SET.json)
  python -m benchmarks.corrections    precision and recall of the detector of corrections, per language
  python -m benchmarks.truth     what becomes of right and wrong proposals (--data FILE --judge oracle)
"""


def main(
    data: Annotated[Path | None, typer.Option(exists=True, help="A data set for the recall.")] = None,
    embedder: Annotated[str | None, typer.Option(help="An OpenAI-compatible address, or `local`.")] = None,
) -> None:
    """List the benchmarks and run their short forms."""
    print(_LIST)
    turn.main(entries="10000", clients="1,8", seconds=3, embedder=embedder)
    prompt_cache.main(turns=100, max_tokens=None)
    if data is None:
        print("No --data given: recall is not measured.")
        return
    recall.main(data, embedder=embedder, limit_conversations=1)


if __name__ == "__main__":
    typer.run(main)
