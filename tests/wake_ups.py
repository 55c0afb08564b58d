"""A publisher that reaches no worker: it collects what would have been sent."""

from shared.foundation.stages import Stage


class WakeUps:
    """A publisher that collects wake-ups."""

    def __init__(self) -> None:
        self.sent: list[tuple[Stage, int]] = []

    def wake(self, stage: Stage, jobs: int = 1) -> None:
        """Collect a wake-up."""
        self.sent.append((stage, jobs))
