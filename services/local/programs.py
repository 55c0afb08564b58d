"""The programs that a stack runs beside its stores: the same commands as in production.

A table handed to the stack, so that the stack's own tests can run small stand-ins.
"""

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """One command; its log and record are called by its name."""

    name: str
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Programs:
    """What runs to its end before the rest (in order), the gateway, and what runs beside it."""

    prepare: tuple[Program, ...]
    gateway: Program
    background: tuple[Program, ...]


def loci(name: str, *words: str) -> Program:
    """Return the program that runs `loci` with these words."""
    # -P: a folder named `services` where the user stands must not be taken for ours.
    return Program(name, (sys.executable, "-P", "-m", "services.cli", *words))


LOCI = Programs(
    prepare=(loci("migrate", "migrate"), loci("dev-key", "keys", "ensure-dev")),
    gateway=loci("gateway", "serve"),
    background=(loci("workers", "work"), loci("beat", "beat"), loci("flower", "flower")),
)
