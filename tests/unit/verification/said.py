"""What was said, as evidence, and the signs of a statement about it."""

from shared.verification.claim import Evidence
from shared.verification.signs import Sign, SignFinder

DAY = "2026-03-04"


def said(*lines: str) -> list[Evidence]:
    """Return lines as evidence: those of the assistant begin with "a: "."""
    return [
        Evidence("assistant", DAY, line.removeprefix("a: "))
        if line.startswith("a: ")
        else Evidence("user", DAY, line)
        for line in lines
    ]


def signs_of(statement: str, *lines: str) -> set[Sign]:
    """Return the signs of a statement about these lines, of which those of the user are the context."""
    evidence = said(*lines)
    return SignFinder().of_statement(
        statement, evidence, [item.text for item in evidence if item.speaker == "user"]
    )
