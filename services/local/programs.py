"""The programs that a stack runs in addition to its databases: the same commands as in production.

The stack gets them as a parameter, so that its tests can run small stand-ins instead.
"""

import sys
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """One command. Its log and its process record have its name."""

    name: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Programs:
    """The commands that prepare the stack, one after the other; the gateway; and those that run beside it."""

    prepare: tuple[Program, ...]
    gateway: Program
    background: tuple[Program, ...]


def loci(name: str, *arguments: str) -> Program:
    """Return the program that runs `loci` with these arguments."""
    # -P: without it, Python would import a folder named `services` in the current directory.
    return Program(name, (sys.executable, "-P", "-m", "services.cli", *arguments))


LOCI = Programs(
    # One process for both: the second would import the client of Postgres again.
    prepare=(loci("migrate", "migrate", "--dev-key"),),
    gateway=loci("gateway", "serve"),
    background=(loci("workers", "work"), loci("beat", "beat"), loci("flower", "flower")),
)
