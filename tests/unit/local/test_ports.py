import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.local import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server((ports.HOST, ports.pick_free_port())) as server:
        yield server.getsockname()[1]


def test_a_port_is_remembered_for_the_next_start(tmp_path: Path) -> None:
    first = ports.reserve_port(tmp_path / "port")
    assert ports.reserve_port(tmp_path / "port") == first


def test_a_remembered_port_that_somebody_took_is_replaced(tmp_path: Path, taken: int) -> None:
    (tmp_path / "port").write_text(str(taken))
    port = ports.reserve_port(tmp_path / "port")
    assert port != taken
    assert (tmp_path / "port").read_text() == str(port)


def test_a_note_that_holds_no_number_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("")
    assert ports.is_free(ports.reserve_port(tmp_path / "port"))


def test_a_port_that_was_asked_for_is_never_exchanged_for_another(tmp_path: Path, taken: int) -> None:
    with pytest.raises(ports.PortTaken, match=str(taken)):
        ports.reserve_port(tmp_path / "port", taken, within=0.1)


def test_new_ports_lie_outside_the_range_of_outgoing_connections() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if high - low > 50_000:
        pytest.skip("this machine hands out nearly all ports")
    assert all(not low <= ports.pick_free_port() <= high for _ in range(50))
