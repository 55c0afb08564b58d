"""How many bytes of bodies a gateway process holds at the same time.

Each body has a limit, but a hundred clients may send one at once. What finds no room is refused while it is
received, and the room that it has taken is free for the others. Bulk bodies leave a quarter to ordinary ones:
a few of them don't keep agents from saving.
"""

_LEFT_BY_BULK = 4


class BodyRoom:
    """The room of one process for the bodies of its running requests."""

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.used_bytes = 0

    def take(self, count: int, *, is_bulk: bool) -> bool:
        """Take room for so many bytes, and return whether there was room."""
        left_bytes = self.size_bytes // _LEFT_BY_BULK if is_bulk else 0
        if self.used_bytes + count > self.size_bytes - left_bytes:
            return False
        self.used_bytes += count
        return True

    def release(self, count: int) -> None:
        """Free the room of so many bytes."""
        self.used_bytes -= count
