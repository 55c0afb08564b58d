"""The labelled pairs that come with the product: what a judge must know before its verdicts count."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from shared.verification.claim import Claim, Evidence, Verdict


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """A claim with the verdict that a careful human gives, its language, and what makes it hard."""

    id: str
    lang: str
    type: str
    claim: Claim
    verdict: Verdict


@cache
def read() -> tuple[LabelledClaim, ...]:
    """Return all pairs."""
    text = files("shared.verification").joinpath("calibration.jsonl").read_text(encoding="utf-8")
    return tuple(_parse(line) for line in text.splitlines())


def read_mixed() -> list[LabelledClaim]:
    """Return all pairs with types and languages mixed, in the same order in each run."""
    return sorted(read(), key=lambda pair: hashlib.sha256(pair.id.encode()).hexdigest())


def _parse(line: str) -> LabelledClaim:
    item = json.loads(line)
    evidence = tuple(Evidence(**turn) for turn in item["evidence"])
    claim = Claim(item["statement"], evidence, item.get("closes"))
    return LabelledClaim(item["id"], item["lang"], item["type"], claim, Verdict(item["verdict"]))
