"""The rewritings of notes: in each round every note is saved for a user of its own and gets one variant."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest

from benchmarks.truth import words
from benchmarks.truth.data import Rewrite
from benchmarks.truth.gateway import Gateway
from benchmarks.truth.outcome import Fate, Outcome, Scope
from benchmarks.truth.proposer import Proposer

PART = "rewritings"
LEAVES_OUT, WRONG = "leaves something out", "says something wrong"
_MIN_WORD = 4
"""Characters from which on a left-out word of a spaced language is searched for; shorter ones are grammar."""


@dataclass(frozen=True, slots=True)
class _Variant:
    rewrite: Rewrite
    texts: tuple[str, ...]
    is_good: bool
    user_id: str

    @property
    def why(self) -> str | None:
        """What is wrong with it."""
        if self.is_good:
            return None
        return WRONG if self.rewrite.wrong_texts(self.texts) else LEAVES_OUT

    def outcome(self, scope: Scope) -> Outcome:
        """Return the fate. A wrong one is stored as soon as one of its wrong texts is."""
        fate = scope.fate(self.texts)
        wrong_texts = () if self.is_good else self.rewrite.wrong_texts(self.texts)
        if any(map(scope.has, wrong_texts)):
            fate = Fate.STORED
        texts = " | ".join(self.texts)
        codes = tuple(state for state in map(_kept_state, scope.memories.values()) if state)
        return Outcome(PART, self.rewrite.id, self.rewrite.lang, texts, self.why, fate, codes=codes)


def _kept_state(memory: dict[str, object]) -> str | None:
    """Return why a note stayed as it was written, if it did."""
    is_kept = memory["state"] in {"kept-raw", "failed"}
    return str(memory.get("failure_reason") or memory["state"]).split(":", 1)[0][:60] if is_kept else None


async def measure(gateway: Gateway, proposer: Proposer, rewrites: Iterable[Rewrite]) -> list[Outcome]:
    """Return what became of all variants."""
    rounds = zip_longest(*(_variants(rewrite) for rewrite in rewrites))
    outcomes: list[Outcome] = []
    for variants in rounds:
        outcomes += await _play(gateway, proposer, [variant for variant in variants if variant])
    return outcomes


def _variants(rewrite: Rewrite) -> list[_Variant]:
    labelled = [*((texts, True) for texts in rewrite.good), *((texts, False) for texts in rewrite.bad)]
    return [
        _Variant(rewrite, texts, is_good, f"{rewrite.id}-{number}")
        for number, (texts, is_good) in enumerate(labelled)
    ]


async def _play(gateway: Gateway, proposer: Proposer, variants: list[_Variant]) -> list[Outcome]:
    proposer.rewritings = {variant.rewrite.note: variant.texts for variant in variants}
    for variant in variants:
        note = {"content": variant.rewrite.note, "occurred_at": f"{variant.rewrite.date}T12:00:00Z"}
        await gateway.send("POST", "/v1/memories", json=note | {"user_id": variant.user_id})
    await gateway.settle()
    return [await _read(gateway, variant) for variant in variants]


async def _read(gateway: Gateway, variant: _Variant) -> Outcome:
    scope = Scope(await gateway.memories(variant.user_id), await gateway.proposals(variant.user_id))
    outcome = variant.outcome(scope)
    query = left_out(variant.rewrite.note, variant.texts)
    if not outcome.is_good or outcome.fate is not Fate.STORED or not query:
        return outcome
    search = {"query": query, "user_id": variant.user_id}
    results = (await gateway.send("POST", "/v1/memories/search", json=search))["results"]
    return replace(outcome, is_found=bool(results))


def left_out(note: str, texts: Iterable[str]) -> str:
    """Return the words of a note that none of the texts has, as a query; '' for none."""
    missing = words.of(note) - words.of(" ".join(texts))
    return " ".join(sorted(word for word in missing if len(word) >= _MIN_WORD or not word.isascii()))
