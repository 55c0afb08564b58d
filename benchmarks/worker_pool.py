"""Start and stop worker processes of the queue `enrichment` under a backlog.

Each worker has its own key for the model, so that the model can distinguish them.
"""

import asyncio

from services.local import data_dir, programs
from services.local.process import Process
from shared.foundation.config import Settings

_GRACE = 30.0  # seconds from SIGTERM to the end


class WorkerPool:
    """The workers on one stack."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._files = data_dir.DataDir(settings.data_dir)
        self._working: list[Process] = []
        self._started_count = 0

    @property
    def names(self) -> list[str]:
        """The names of the running workers, which are also their keys for the model."""
        return [process.name for process in self._working]

    async def resize(self, count: int) -> None:
        """Start workers, or stop the newest and wait for their end, until there are `count`."""
        while len(self._working) < count:
            self._working.append(self._start())
        stopping, self._working = self._working[count:], self._working[:count]
        for process in stopping:
            process.request_stop()
        for process in stopping:
            await asyncio.to_thread(process.stop, within=_GRACE)

    def _start(self) -> Process:
        self._started_count += 1
        # Two tasks at once: the next takes over while the calls of the last still end.
        words = ("work", "--queues", "enrichment", "--concurrency", "2")
        program = programs.loci(f"worker-{self._started_count}", *words)
        process = Process(
            program.name,
            program.argv,
            log=self._files.log(program.name),
            record_file=self._files.record(program.name),
            env=data_dir.environment(self._settings, self._files.root) | {"LOCI_LLM_API_KEY": program.name},
        )
        process.start()
        return process
