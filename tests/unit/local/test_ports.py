import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.local import ports


@pytest.fixture
def used_port() -> Iterator[int]:
    with socket.create_server((ports.HOST, ports.pick_free_port())) as server:
        yield server.getsockname()[1]


def test_a_port_is_remembered_for_the_next_start(tmp_path: Path) -> None:
    first = ports.reserve_port(tmp_path / "port")
    assert ports.reserve_port(tmp_path / "port") == first


def test_a_remembered_port_that_is_in_use_is_replaced(tmp_path: Path, used_port: int) -> None:
    (tmp_path / "port").write_text(str(used_port))
    port = ports.reserve_port(tmp_path / "port")
    assert port != used_port
    assert (tmp_path / "port").read_text() == str(port)


def test_a_port_file_without_a_number_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("")
    assert ports.is_free(ports.reserve_port(tmp_path / "port"))


def test_a_requested_port_is_never_replaced_by_another(tmp_path: Path, used_port: int) -> None:
    with pytest.raises(ports.PortTaken, match=str(used_port)):
        ports.reserve_port(tmp_path / "port", used_port, within=0.1)


def test_new_ports_are_outside_the_range_of_outgoing_connections() -> None:
    low, high = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if high - low > 50_000:
        pytest.skip("this machine hands out nearly all ports")
    assert all(not low <= ports.pick_free_port() <= high for _ in range(50))
