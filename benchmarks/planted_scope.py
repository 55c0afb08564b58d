"""A scope with many skills and a large graph, and messages that are about both."""

import random
import time

from benchmarks import planted_graph
from benchmarks.corpus import Corpus
from benchmarks.local_stack import BenchmarkStack
from benchmarks.raw_http import Connection

SKILLS, ENTITIES = 100, 100_000
_PARAGRAPHS = 8


class PlantedCorpus(Corpus):
    """A corpus whose messages each name an entity of the graph, and a skill."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._rng = random.Random(seed)
        self.names = [planted_graph.name_of(number) for number in range(ENTITIES)]
        self.skill_words = [
            f"procedure{planted_graph.name_of(number)[:4]}{number}" for number in range(SKILLS)
        ]

    def message(self) -> str:
        """Return a message that names one entity and one skill."""
        return f"{super().message()} {self._rng.choice(self.names)} {self._rng.choice(self.skill_words)}"


async def plant(running: BenchmarkStack, connection: Connection, corpus: PlantedCorpus) -> str:
    """Write the skills and the graph, and return how long that took."""
    started = time.monotonic()
    for number, word in enumerate(corpus.skill_words):
        paragraphs = [str(corpus.memory()["content"]) for _ in range(_PARAGRAPHS)]
        skill = {"content": "\n\n".join([f"# {word}", *paragraphs]), "summary": f"How the {word} is done."}
        await connection.send("PUT", f"/v1/skills/bench-{number}", skill)
    await planted_graph.plant(running, connection, corpus.names, random.Random(SKILLS))
    seconds = time.monotonic() - started
    return f"planted {SKILLS} skills and {ENTITIES} entities with as many triples in {seconds:.0f} s"
