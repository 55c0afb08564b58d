"""What a long document costs: `python -m benchmarks.documents [--mebibytes 25]`.

A text of so many MiB whose sentences all differ is uploaded over HTTP and seen through until search finds it;
then it is deleted. Shown are the seconds of each tenth of the way, which tell whether a worker reads the file
anew in each turn; the most memory that the workers' process and the process that reads the file have used
(VmHWM and VmRSS of /proc/PID/status, so this runs on Linux alone); and how long the deletion takes until its
answer and until its receipt says that nothing is left.
"""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

from benchmarks import local_stack, machine, process_table, table
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack

_SEED = 7
_MIB = 1024 * 1024
_KIB_PER_MIB = 1024
_SENTENCES = 6
_PAUSE = 0.2
_MAX_SECONDS = 3600.0
_PATH = "/v1/documents"


@dataclass(slots=True)
class Way:
    """What was seen of a document on its way: seconds by progress, and the parser's highest memory in MiB."""

    began: float
    seconds: dict[float, float] = field(default_factory=dict)
    parser_mib: float = 0.0

    def note(self, progress: float) -> None:
        """Note when each tenth was reached."""
        for tenth in range(1, 11):
            if progress >= tenth / 10:
                self.seconds.setdefault(tenth / 10, time.perf_counter() - self.began)


def main(
    mebibytes: Annotated[float, typer.Option(help="The length of the text.")] = 24.9,
    lease: Annotated[float, typer.Option(help="The lease of a job in seconds; a turn is half of it.")] = 120,
) -> None:
    """Measure one document on a stack of its own, and print tables."""
    print(machine.describe())
    print(f"before: {machine.load()}")
    text = _text(round(mebibytes * _MIB))
    with local_stack.running(job_lease=lease, dream_enabled=False) as running:
        asyncio.run(_measure(running, text))


def _text(length: int) -> bytes:
    """Return paragraphs of sentences that all differ, of about so many bytes."""
    corpus, parts, size = Corpus(_SEED), list[str](), 0
    while size < length:
        parts.append(" ".join(corpus.memory()["content"] for _ in range(_SENTENCES)))
        size += len(parts[-1]) + 2
    return "\n\n".join(parts).encode()[:length]


async def _measure(running: BenchmarkStack, text: bytes) -> None:
    workers = json.loads((running.settings.data_dir / "run" / "workers.json").read_text())["pid"]
    headers = {"authorization": f"Bearer {running.key}"}
    async with httpx.AsyncClient(base_url=running.url, headers=headers, timeout=_MAX_SECONDS) as client:
        before = _peak(workers)
        began = time.perf_counter()
        sent = await client.post(_PATH, files={"file": ("long.txt", text)}, data={"source": "long"})
        sent.raise_for_status()
        print(f"{len(text) / _MIB:.1f} MiB accepted after {time.perf_counter() - began:.1f} s")
        document, way = await _until_ready(client, sent.json()["id"], workers, began)
        print(f"{document['state']} with {document['chunk_count']} chunks")
        table.show(
            ("progress", "seconds"), [[f"{at:.0%}", f"{way.seconds[at]:.1f}"] for at in sorted(way.seconds)]
        )
        rows = [
            ["workers before", f"{before:.0f}"],
            ["workers", f"{_peak(workers):.0f}"],
            ["parser", f"{way.parser_mib:.0f}"],
        ]
        table.show(("highest memory", "MiB"), rows)
        await _delete(client, document["id"])


async def _until_ready(
    client: httpx.AsyncClient, document_id: str, workers: int, began: float
) -> tuple[dict[str, Any], Way]:
    way = Way(began)
    while True:
        document = (await client.get(f"{_PATH}/{document_id}")).json()
        way.note(document["progress"])
        way.parser_mib = max(way.parser_mib, _memory_of_parsers(workers))
        if document["state"] in {"ready", "failed"} or time.perf_counter() - began > _MAX_SECONDS:
            return document, way
        await asyncio.sleep(_PAUSE)


async def _delete(client: httpx.AsyncClient, document_id: str) -> None:
    word = (await client.post(f"{_PATH}/search", json={"query": "because"})).json()["results"][0]["text"]
    began = time.perf_counter()
    answer = await client.delete(f"{_PATH}/{document_id}")
    answered = time.perf_counter() - began
    found = (await client.post(f"{_PATH}/search", json={"query": word[:200]})).json()["results"]
    receipt = f"/v1/erasures/{answer.json()['erasure_id']}"
    emptied = await _seconds_until_done(client, receipt, began)
    head = ("deletion", "status", "answered after s", "still found", "nothing left after s")
    row = ["document", str(answer.status_code), f"{answered:.2f}", str(len(found)), f"{emptied:.1f}"]
    table.show(head, [row])


async def _seconds_until_done(client: httpx.AsyncClient, receipt: str, began: float) -> float:
    while (await client.get(receipt)).json()["state"] != "done":
        if time.perf_counter() - began > _MAX_SECONDS:
            return float("inf")
        await asyncio.sleep(_PAUSE)
    return time.perf_counter() - began


def _memory_of_parsers(workers: int) -> float:
    return sum(_status(pid, "VmRSS") for pid in process_table.family(workers) if _is_parser(pid))


def _is_parser(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return b"workers.documents.parsing" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _peak(pid: int) -> float:
    """Return the most memory in MiB that a process itself has had at once."""
    return max(_status(member, "VmHWM") for member in process_table.family(pid) if not _is_parser(member))


def _status(pid: int, name: str) -> float:
    with suppress(FileNotFoundError, ProcessLookupError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / _KIB_PER_MIB
    return 0.0


if __name__ == "__main__":
    typer.run(main)
