"""Search the business context, `agent.md`, which people have written for all agents of the tenant.

It is short, so it is read whole and scored here. Its passages come before those of documents, so a word in
common is not enough: a passage must have a third of the query's words.
"""

from collections.abc import Iterator
from dataclasses import replace

from shared.foundation.origin import UNKNOWN
from shared.memory.business_context import queries
from shared.memory.business_context.part import origin_of, parts_of, text_of
from shared.memory.documents.chunk import chunk
from shared.memory.documents.parsed import Block
from shared.memory.documents.passage import Passage
from shared.platform.resources import Resources
from shared.search.text import bm25
from shared.search.text.tokenizer import tokenize, tokenize_query

TITLE = "agent.md"
MAX_PASSAGES = 3
_MIN_COMMON_WORDS = 1 / 3


async def search_agent_md(resources: Resources, tenant: str, query: str) -> list[Passage]:
    """Return the passages of a tenant's business context that match a query, best first, with BM25 scores."""
    async with resources.postgres.for_tenant(tenant) as tx:
        parts = parts_of(await queries.list_rows(tx))
    passages = passages_of(text_of(parts), query, resources.settings.document_chunk_chars)
    return [replace(passage, origin=origin_of(parts) or UNKNOWN) for passage in passages]


def passages_of(text: str, query: str, size: int) -> list[Passage]:
    """Return the passages of a text that match a query, of at most `size` characters each, best first."""
    chunks = chunk(list(_paragraphs(text)), size, 0)
    scores = bm25.score_texts(query, [piece.text for piece in chunks])
    passages = [
        Passage(piece.text, score, TITLE, line_from=piece.line_from, line_to=piece.line_to)
        for piece, score in zip(chunks, scores, strict=True)
        if score > 0 and _share_of_words(query, piece.text) >= _MIN_COMMON_WORDS
    ]
    return sorted(passages, key=lambda passage: -passage.score)[:MAX_PASSAGES]


def _paragraphs(text: str) -> Iterator[Block]:
    """Yield what stands between blank lines, with its lines from 1."""
    first, lines = 1, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            first = first if lines else number
            lines.append(line)
        elif lines:
            yield Block("\n".join(lines), line_from=first, line_to=number - 1)
            lines = []


def _share_of_words(query: str, text: str) -> float:
    words = set(tokenize_query(query))
    return len(words & set(tokenize(text))) / len(words)
