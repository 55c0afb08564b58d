"""Send requests to one OpenAI-compatible endpoint, and translate its failures.

Requests are not retried here, because the job behind a request is retried. An endpoint is configured
but not trusted: redirects are refused, proxies of the environment are not used, and the size of a
response is limited.
"""

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from pydantic import SecretStr

from shared.foundation import errors
from shared.foundation.stages import ReasonCode
from shared.infra import model_failures
from shared.infra.telemetry import traces
from shared.infra.telemetry.span import HEADER

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_NO_LIST = {ReasonCode.MODEL_UNKNOWN, ReasonCode.NOT_PERMITTED}
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
_NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)
_NO_OBJECT = "its response is not a JSON object"
_MAX_CONNECTIONS = 64
_AFTER_PATH = re.compile("[?#]")
# Idle connections are closed earlier than by most servers (after 5 s), or a call may hit one that is closing.
_IDLE_SECONDS = 4


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model of which endpoint is asked, as digests: addresses may have passwords in them.

    `settings` is a digest that also covers the key: whoever has other settings may be answered where
    others were refused.
    """

    endpoint: str
    model: str
    settings: str


class ModelEndpoint:
    """A client that posts JSON to one base URL.

    It raises errors.Unavailable for failures that are not the request's fault, a response of something else
    than a model among them, and errors.InvalidModelReply for all others (`shared.infra.model_failures`).
    """

    def __init__(self, name: str, base_url: str, api_key: SecretStr | None, timeout: float) -> None:
        self.name = name
        self._base_url = base_url.rstrip("/")
        self._key = api_key.get_secret_value() if api_key else ""
        self._timeout = timeout
        self._answered_at: float | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def host(self) -> str:
        """The host and port of the address, without credentials."""
        return self._authority_and_path[0]

    @property
    def address_digest(self) -> str:
        """A digest of the host and path. A path may be a secret, so it is not kept in plain words."""
        return _digest("/".join(self._authority_and_path))

    @property
    def _authority_and_path(self) -> tuple[str, str]:
        address = _AFTER_PATH.split(self._base_url.partition("//")[2], maxsplit=1)[0]
        authority, _, path = address.partition("/")
        return authority.rpartition("@")[2], path

    def identity(self, model: str) -> ModelIdentity:
        """Return the identity of a model of this endpoint."""
        return ModelIdentity(
            _digest(self._base_url), model, _digest(f"{self._base_url}\n{model}\n{self._key}")
        )

    def answered_within(self, seconds: float) -> bool:
        """Tell whether this process got an answer in the last `seconds`."""
        return self._answered_at is not None and time.monotonic() - self._answered_at < seconds

    async def post(
        self, path: str, body: dict[str, Any], timeout: float | None = None, field: str | None = None
    ) -> dict[str, Any]:
        """Post `body` and return the JSON object of the response, which has `field`.

        `timeout` is in seconds.
        """
        with traces.span(f"POST {path}", "client") as span:
            headers = {HEADER: trace} if (trace := traces.traceparent()) else {}
            status, response_headers, content = await self._send("POST", path, body, headers, timeout)
            span.set_attributes(**{"http.response.status_code": status})
            if failure := model_failures.failure_of(self.name, status, response_headers, content, body):
                raise failure
            answer = self._parse(content, field)
        self._answered_at = time.monotonic()
        return answer

    async def list_models(self, timeout: float | None = None) -> list[str]:
        """Return the names of the models that the endpoint lists; none if it has no list.

        `timeout` is in seconds. Raises errors.Unavailable if it can't tell now, or refuses the key.
        """
        status, headers, content = await self._send("GET", "models", None, {}, timeout)
        failure = model_failures.failure_of(self.name, status, headers, content)
        has_no_list = isinstance(failure, errors.ModelRefused) and failure.reason_code in _NO_LIST
        if isinstance(failure, errors.Unavailable) and not has_no_list:
            raise failure
        answer = _parse_json(content)
        rows = answer.get("data") if isinstance(answer, dict) else None
        names = [row.get("id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return [name for name in names if isinstance(name, str) and name]

    def _parse(self, content: bytes, field: str | None) -> dict[str, Any]:
        """Return the object of a response.

        Raises errors.NotAModelReply for anything else: a model's endpoint answers such an object whatever it
        was asked. A page comes from a proxy that has not asked the model.
        """
        answer = _parse_json(content)
        if isinstance(answer, dict) and (field is None or field in answer):
            return answer
        is_page = content.lstrip().startswith(b"<")
        reason = f"its response has no '{field}'" if isinstance(answer, dict) else _NO_OBJECT
        raise errors.NotAModelReply(self.name, reason, may_have_run=not is_page)

    async def _send(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None,
        headers: dict[str, str],
        timeout: float | None,
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, the headers and the body of the response."""
        # A long answer may come in many parts: each of them has this time, and the caller limits the whole.
        seconds = timeout or self._timeout
        limit = aiohttp.ClientTimeout(total=None, connect=seconds, sock_connect=seconds, sock_read=seconds)
        try:
            async with self._open_session().request(
                method,
                f"{self._base_url}/{path}",
                data=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=limit,
                allow_redirects=False,
            ) as response:
                return response.status, response.headers, await _read_bounded(response)
        except _FAILURES as error:
            may_have_run = not isinstance(error, _NEVER_SENT)
            raise errors.Unavailable(self.name, type(error).__name__, may_have_run=may_have_run) from error

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"content-type": "application/json"}
            has_password = "@" in self._base_url.partition("//")[2].partition("/")[0]
            if self._key and not has_password:  # one in the address is sent instead of the key
                headers["authorization"] = f"Bearer {self._key}"
            connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS)
            self._session = aiohttp.ClientSession(connector=connector, headers=headers, trust_env=False)
        return self._session

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _parse_json(content: bytes) -> Any:
    """Return a JSON value, in which numbers may be NaN and Infinity as some servers write them, or None."""
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > MAX_RESPONSE_BYTES:
            raise errors.InvalidModelReply(f"the response is over {MAX_RESPONSE_BYTES} bytes")
    return bytes(content)


def usage_of(response: Any) -> dict[str, Any]:
    """Return the usage object of a response of any shape; empty if it has none."""
    usage = response.get("usage") if isinstance(response, dict) else None
    return usage if isinstance(usage, dict) else {}
