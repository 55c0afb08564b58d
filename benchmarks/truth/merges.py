"""The merges of memories: in each round every pair is saved for a user of its own and gets one variant."""

import asyncio
from collections.abc import Iterable
from itertools import zip_longest

from benchmarks.truth.data import Merge
from benchmarks.truth.gateway import Gateway
from benchmarks.truth.outcome import Outcome, Scope
from benchmarks.truth.proposer import Proposer

PART = "merges"
_Variant = tuple[Merge, int, str]
"""A merge, the number of its variant (0 is the right one), and the text of the variant."""


async def measure(gateway: Gateway, proposer: Proposer, merges: Iterable[Merge]) -> list[Outcome]:
    """Return what became of all variants."""
    variants = [
        [(merge, number, text) for number, text in enumerate((merge.good, *merge.bad))] for merge in merges
    ]
    outcomes: list[Outcome] = []
    for round_ in zip_longest(*variants):
        outcomes += await _play(gateway, proposer, [variant for variant in round_ if variant])
    return outcomes


async def _play(gateway: Gateway, proposer: Proposer, variants: list[_Variant]) -> list[Outcome]:
    proposer.merges = {
        frozenset(text for text, _ in merge.memories): content for merge, _, content in variants
    }
    codes = await asyncio.gather(*(_consolidate(gateway, variant) for variant in variants))
    await gateway.settle()
    return [
        await _read(gateway, variant, variant_codes)
        for variant, variant_codes in zip(variants, codes, strict=True)
    ]


async def _consolidate(gateway: Gateway, variant: _Variant) -> tuple[str, ...]:
    """Save the memories, let a dream merge them, and return the codes of its refusals."""
    merge, user_id = variant[0], _user_id(variant)
    await gateway.import_memories(user_id, merge.memories)
    body = {"user_id": user_id, "passes": ["consolidate"]}
    run = await gateway.finished_run(await gateway.send("POST", "/v1/dreams", json=body))
    not_done = [f"{pass_['state']} pass" for pass_ in run["passes"] if pass_["state"] != "done"]
    codes = not_done + [rejection["code"] for pass_ in run["passes"] for rejection in pass_["rejections"]]
    return tuple(dict.fromkeys(codes))


async def _read(gateway: Gateway, variant: _Variant, codes: tuple[str, ...]) -> Outcome:
    (merge, number, content), user_id = variant, _user_id(variant)
    scope = Scope(await gateway.memories(user_id), await gateway.proposals(user_id))
    fate = scope.fate([content])
    why = "says something wrong" if number else None
    return Outcome(PART, merge.id, merge.lang, content, why, fate, codes=codes)


def _user_id(variant: _Variant) -> str:
    return f"{variant[0].id}-{variant[1]}"
