"""The host of a request is what stands there, and nothing that a lenient reader of addresses makes of it."""

import pytest

from shared.foundation import config, errors
from shared.foundation.host_names import host_of, host_of_origin

EVIL = [
    "localhost/@evil.com",
    "localhost@evil.com",
    "evil.com@localhost",
    "evil.com\\@localhost",
    "localhost#.evil.com",
    "localhost?evil.com",
    "localhost evil.com",
    "localhost,evil.com",
    "localhost:8700:80",
    "localhost:",
    "localhost:port",
    "localhost:123456",
    "localhost\n",
    "//localhost",
    "http://localhost",
    "[::1",
    "[localhost]",
    "[::1]evil.com",
    "::1",
    "localhost.",
    ".localhost",
    "loc\u0430lhost",
    "%6cocalhost",
    "",
]


@pytest.mark.parametrize("header", EVIL)
def test_what_is_no_host_has_no_name(header: str) -> None:
    assert host_of(header) is None
    assert host_of_origin(f"http://{header}") is None


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8700", "localhost"),
        ("127.0.0.1:1", "127.0.0.1"),
        ("[::1]:8700", "[::1]"),
        ("memory.example.org", "memory.example.org"),
        ("loci_gateway-1", "loci_gateway-1"),
    ],
)
def test_the_port_and_the_case_of_a_host_do_not_matter(header: str, name: str) -> None:
    assert host_of(header) == name
    assert host_of_origin(f"https://{header}") == name


@pytest.mark.parametrize(
    "origin", ["null", "", "localhost", "//localhost", "http:localhost", "http://localhost/"]
)
def test_what_is_no_origin_has_no_name(origin: str) -> None:
    assert host_of_origin(origin) is None


@pytest.mark.parametrize("hosts", ["http://memory.example.org", "a b", "localhost,/mcp", "*.example.org"])
def test_a_list_of_hosts_with_an_address_stops_the_start_with_the_name_of_the_variable(hosts: str) -> None:
    with pytest.raises(errors.Misconfigured, match="LOCI_MCP_HOSTS"):
        config.load(mcp_hosts=hosts)


def test_a_list_of_hosts_may_have_ports_and_spaces() -> None:
    settings = config.load(mcp_hosts=" memory.example.org:443 , [::1],")
    assert settings.mcp_host_list == ("memory.example.org:443", "[::1]")
    assert config.load(mcp_hosts="*").mcp_host_list == ("*",)
