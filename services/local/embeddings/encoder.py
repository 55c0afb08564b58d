"""Compute the embeddings of texts: tokenizer and ONNX session behind one asynchronous call.

Threads: one inference thread per core, each running the session single-threaded. Spreading one
operator over two cores was measured to be no faster for batches, and its spinning threads slow
down the other processes on the machine.

Fairness: a request runs at most one batch per core at a time, and batches are small. So a query
that arrives during a bulk request waits for one batch and not for the whole request.

Texts are sorted by length before they are divided into batches, because every text is padded to
the longest of its batch. The result is in the order of the request.
"""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from services.local.embeddings import graph
from services.local.embeddings.graph import Array
from services.local.embeddings.model import Model
from shared.foundation.atomic_file import write_atomically

# Tokens of a batch, with padding. Larger batches were no faster, and a query waits longer for them.
BATCH_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Encoded:
    """Vectors [texts, dimension], each of length 1, and the number of tokens that were read."""

    vectors: Array
    tokens: int


class Encoder:
    """A loaded model, created once per process. Tasks of one event loop may call `encode` concurrently."""

    def __init__(self, model: Model, cache: Path, threads: int | None = None) -> None:
        self.model = model
        self._threads = threads or os.cpu_count() or 1
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="encoder")
        self._tokenizer = _load_tokenizer(model)
        self._session = _open_session(_graph_file(model, cache))

    async def encode(self, texts: Sequence[str]) -> Encoded:
        """Return one vector per text, in order. A text is cut after `max_tokens` tokens."""
        loop = asyncio.get_running_loop()
        ids = await loop.run_in_executor(self._pool, self._tokenize, texts)
        vectors = np.empty((len(ids), self.model.dimension), np.float32)
        batches = cut_batches([len(row) for row in ids])

        async def run(lane: Sequence[list[int]]) -> None:
            for rows in lane:
                vectors[rows] = await loop.run_in_executor(
                    self._pool, self._infer, [ids[row] for row in rows]
                )

        await asyncio.gather(*(run(batches[first :: self._threads]) for first in range(self._threads)))
        return Encoded(vectors, sum(map(len, ids)))

    def close(self) -> None:
        """Wait for the running batches and stop the threads."""
        self._pool.shutdown(cancel_futures=True)

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def _infer(self, batch: Sequence[list[int]]) -> Array:
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        vectors: Array = self._session.run(["vectors"], {"ids": ids, "mask": mask})[0]
        return vectors


def cut_batches(lengths: Sequence[int], budget: int = BATCH_TOKENS) -> list[list[int]]:
    """Return row numbers in batches of similar length, each within `budget` tokens with padding.

    The longest come first, so that the last batches are cheap ones and no core is idle for long.
    """
    batches: list[list[int]] = []
    longest = 0
    for row in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if batches and (len(batches[-1]) + 1) * longest <= budget:
            batches[-1].append(row)
        else:
            batches.append([row])
            longest = lengths[row]
    return batches


def _load_tokenizer(model: Model) -> Tokenizer:
    """Load the tokenizer with the model's limit, because the file's padding and limit are for training."""
    tokenizer = Tokenizer.from_file(str(model.tokenizer))
    tokenizer.no_padding()
    tokenizer.enable_truncation(model.max_tokens)
    return tokenizer


def _graph_file(model: Model, cache: Path) -> Path:
    """Return the graph's file, and build it on first use. The name contains a digest of its sources."""
    with model.weights.open("rb") as weights:
        source = sha256(f"{graph.GRAPH_VERSION} {model.layers} {model.heads} {model.epsilon} ".encode())
        for block in iter(lambda: weights.read(1 << 20), b""):
            source.update(block)
    file = cache / f"{model.name}-{source.hexdigest()[:16]}.onnx"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        write_atomically(file, graph.build(model, load_file(model.weights)).SerializeToString())
    return file


def _open_session(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
