"""What one transaction of an import of a graph has to do, and what it did."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.foundation.origin import Origin
from shared.foundation.scope import Scope
from shared.infra.transaction import Transaction
from shared.lifecycle.transfer.graph_lines import EntityLine, TripleLine
from shared.lifecycle.transfer.scope_report import KindReport


class Overtaken(Exception):
    """Somebody else has written one of the records meanwhile: the transaction is to begin anew."""


@dataclass(slots=True)
class GraphBatch:
    """Lines with their numbers in the upload; `refused` are numbers by the rule that they break."""

    tx: Transaction
    scope: Scope
    importer: Origin
    entities: Sequence[tuple[int, EntityLine]] = ()
    triples: Sequence[tuple[int, TripleLine]] = ()
    part: KindReport = field(default_factory=KindReport)
    refused: dict[str, list[int]] = field(default_factory=dict)

    def refuse(self, number: int, rule: str) -> None:
        """Note that a line is not imported, and why."""
        self.refused.setdefault(rule, []).append(number)
