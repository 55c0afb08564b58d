"""What `loci mcp` refuses by itself, and how it reads what answers at the gateway's address."""

from collections.abc import Callable
from typing import Any

import httpx
import mcp_types
import pytest
from mcp.shared.exceptions import MCPError

from services.commands import mcp
from services.commands.mcp import Choice, Forwarder
from services.gateway.tools import registry, schema
from shared.foundation import errors

Answer = Callable[[httpx.Request], httpx.Response]
CONTEXT: Any = None
LISTED = ["memory_search", "memory_add"]


def forwarder(answer: Answer) -> Forwarder:
    """Return a forwarder to a gateway that answers so."""
    client = httpx.AsyncClient(base_url="http://gateway", transport=httpx.MockTransport(answer))
    return Forwarder(client, "default")


class Gateway:
    """Lists two tools, and notes what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request."""
        self.asked.append(f"{request.method} {request.url.raw_path.decode()}")
        if request.method == "GET":
            tools = [schema.in_style(registry.BY_NAME[name], "mcp") for name in LISTED]
            return httpx.Response(200, json={"results": tools})
        return httpx.Response(200, json={"content": "done", "is_error": False})


def call(name: str, **arguments: Any) -> mcp_types.CallToolRequestParams:
    """Return the parameters of a call."""
    return mcp_types.CallToolRequestParams(name=name, arguments=arguments)


def text_of(result: mcp_types.CallToolResult) -> str:
    """Return what a model reads."""
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


async def test_only_what_is_listed_is_called_and_the_list_is_asked_for_once() -> None:
    gateway = Gateway()
    loci = forwarder(gateway)
    for name in ("memory_update", "", ".", "..", "../memories", "memory_add/..", "memory_search?x=1"):
        with pytest.raises(MCPError, match="in the list of this server"):
            await loci.call_tool(CONTEXT, call(name))
    with pytest.raises(MCPError) as refused:
        await loci.call_tool(CONTEXT, call("x" * 100_000))
    assert len(str(refused.value)) < 300
    assert text_of(await loci.call_tool(CONTEXT, call("memory_add", content="x"))) == "done"
    path = "/v1/tools?set=default&style=mcp"
    assert gateway.asked == [f"GET {path}", "POST /v1/tools/memory_add"]


async def test_numbers_that_are_none_are_left_to_the_gateway() -> None:
    bodies = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return Gateway()(request)

    loci = forwarder(answer)
    assert text_of(await loci.call_tool(CONTEXT, call("memory_add", importance=float("nan")))) == "done"
    assert bodies[-1] == b'{"arguments": {"importance": NaN}}'
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    result = await loci.call_tool(CONTEXT, call("memory_add", tags=deep))
    assert result.is_error
    assert "ordinary depth" in text_of(result)


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (httpx.Response(200, text="<h1>Welcome</h1>"), "is no gateway of Loci"),
        (httpx.Response(200, json=[1]), "is no gateway of Loci"),
        (httpx.Response(200, json={"other": 1}), "is no gateway of Loci"),
        (httpx.Response(502, text="Bad gateway " * 100), "The gateway answered 502: Bad gateway"),
        (
            httpx.Response(
                401, json={"detail": "no key"}, headers={"content-type": "application/problem+json"}
            ),
            "no key",
        ),
    ],
)
async def test_what_is_no_answer_of_a_gateway_is_said_in_words(response: httpx.Response, text: str) -> None:
    loci = forwarder(lambda _: response)
    answer = await loci.call_tool(CONTEXT, call("memory_add"))
    assert answer.is_error
    assert text in text_of(answer)
    assert len(text_of(answer)) < 400
    with pytest.raises(MCPError, match=text):
        await loci.list_tools(CONTEXT, None)


@pytest.mark.parametrize("field", ["agent", "user", "session"])
@pytest.mark.parametrize("value", ["", "a\n", "a\nb", " a", "..", "x" * 129, "\u200b"])
def test_an_option_that_is_no_id_is_refused_by_its_name(field: str, value: str) -> None:
    with pytest.raises(errors.Invalid, match=f"--{field}: must"):
        Choice(**{field: value})


@pytest.mark.parametrize("key", ["", " ", "loci_0\n_0", "loci_ß", "Bearer loci_0", "loci_\x000"])
def test_a_key_that_is_no_header_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(errors.Misconfigured, match="must be one word") as refused:
        mcp._checked_key(key)
    assert "loci_" not in str(refused.value)


def test_white_space_around_a_key_is_none_of_it() -> None:
    assert mcp._checked_key(" loci_0_0\n") == "loci_0_0"


@pytest.mark.parametrize("address", ["", "nowhere", "localhost:8700", "ftp://a", "http://", "http://a\nb"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(errors.Misconfigured, match="must be an address"):
        mcp._checked_address(address)


def test_an_address_with_a_path_is_kept() -> None:
    assert mcp._checked_address("https://memory.example.org/loci") == "https://memory.example.org/loci"
