"""Send requests to one OpenAI-compatible endpoint, and translate its failures.

Requests are not retried here, because the job behind a request is retried. An endpoint is configured
but not trusted: redirects are refused, proxies of the environment are not used, and the size of a
response is limited.
"""

import email.utils
import re
import time
from typing import Any

import httpx
import orjson
from pydantic import SecretStr

from shared.foundation import errors
from shared.infra.telemetry import traces

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_ERROR_CODE = re.compile(r"[A-Za-z][A-Za-z_-]{2,39}")
_TRANSIENT_STATUSES = {408, 409, 425, 429}
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class ModelEndpoint:
    """A client that posts JSON to one base URL.

    It raises errors.Unavailable for transient failures and errors.InvalidModelReply for all others.
    """

    def __init__(self, name: str, base_url: str, api_key: SecretStr | None, timeout: float) -> None:
        headers = {"authorization": f"Bearer {api_key.get_secret_value()}"} if api_key else {}
        self.name = name
        self._client = httpx.AsyncClient(
            base_url=base_url.rstrip("/") + "/",
            headers=headers,
            timeout=timeout,
            trust_env=False,
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16),
        )

    async def post(self, path: str, body: dict[str, Any], timeout: float | None = None) -> Any:
        """Post `body` and return the JSON of the response; `timeout` is in seconds."""
        with traces.span(f"POST {path}", "client") as span:
            headers = {traces.HEADER: trace} if (trace := traces.traceparent()) else {}
            response, content = await self._send(path, body, headers, timeout)
            span.set_attributes(**{"http.response.status_code": response.status_code})
            self._check_status(response, content)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise errors.InvalidModelReply(f"{self.name} answered something that is not JSON") from None

    async def _send(
        self, path: str, body: dict[str, Any], headers: dict[str, str], timeout: float | None
    ) -> tuple[httpx.Response, bytes]:
        limit = timeout or httpx.USE_CLIENT_DEFAULT
        try:
            async with self._client.stream(
                "POST", path, json=body, headers=headers, timeout=limit
            ) as response:
                return response, await _read_bounded(response)
        except httpx.HTTPError as error:
            may_have_run = not isinstance(error, _NEVER_SENT)
            raise errors.Unavailable(self.name, type(error).__name__, may_have_run=may_have_run) from error

    def _check_status(self, response: httpx.Response, content: bytes) -> None:
        status = response.status_code
        if status in _TRANSIENT_STATUSES or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise errors.Unavailable(self.name, f"status {status}", retry_after(response.headers))
        if status >= httpx.codes.MULTIPLE_CHOICES:
            message = f"{self.name} refused the request with status {status}: {_error_code(content)}"
            raise errors.InvalidModelReply(message, rejected_by_endpoint=True)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _read_bounded(response: httpx.Response) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > MAX_RESPONSE_BYTES:
            raise errors.InvalidModelReply(f"the response is over {MAX_RESPONSE_BYTES} bytes")
    return bytes(content)


def _error_code(content: bytes) -> str:
    """Return the endpoint's code or type of the error, never its message, which may quote the request."""
    try:
        error = orjson.loads(content)["error"]
        codes = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return "no reason given"
    return next((code for code in codes if _ERROR_CODE.fullmatch(code)), "no reason given")


def usage_of(response: Any) -> dict[str, Any]:
    """Return the usage object of a response of any shape; empty if it has none."""
    usage = response.get("usage") if isinstance(response, dict) else None
    return usage if isinstance(usage, dict) else {}


def retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds until the time in Retry-After, which may be a number or a date (RFC 9110)."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        date = email.utils.parsedate_tz(value)
        return max(0.0, email.utils.mktime_tz(date) - time.time()) if date else None
