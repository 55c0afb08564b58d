"""A stack starts its databases at the same time."""

import threading
from pathlib import Path

import pytest

from services.local import ports, stack
from services.local.process import StartFailed
from services.local.programs import Program, Programs
from services.local.redis import Redis
from shared.foundation import config

_meeting = threading.Barrier(3, timeout=20)


class Waiting(Redis):
    """A database that is ready only when three of them are starting at once."""

    def start(self) -> str:
        _meeting.wait()
        return "redis://127.0.0.1:1/0"


def test_each_database_starts_while_the_others_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("postgres", "redis", "qdrant")
    monkeypatch.setattr(stack, "_SERVERS", [type(name, (Waiting,), {"name": name}) for name in names])
    for name in names:
        monkeypatch.delenv(f"LOCI_{name.upper()}_URL", raising=False)
    settings = config.load(
        data_dir=tmp_path / "data", port=ports.pick_free_port(), flower_port=ports.pick_free_port()
    )
    end = Program("the-end", ("false",))
    with (
        pytest.raises(StartFailed, match="the-end failed"),
        stack.Stack(settings, commands=Programs((end,), end, ())).running(),
    ):
        pass
