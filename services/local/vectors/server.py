"""The HTTP server: its routes, and the format of responses and errors."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from services.local.vectors import flush, queries, writes
from services.local.vectors.catalog import Catalog
from shared.foundation import errors

# The version of Qdrant's protocol (the client compares it with its own), then the name of this server.
VERSION = f"1.20.0+loci-on-edge.{metadata.version('qdrant-edge-py')}"

# Accepted without effect. `wait` and `ordering`: every write is applied before it is acknowledged, in
# the order of arrival. `timeout` and `consistency` concern other nodes of a cluster, and there are none.
_PARAMETERS = {"wait", "ordering", "timeout", "consistency"}
_STATUSES = {errors.NotFound: 404, errors.Conflict: 409, errors.Invalid: 400}
_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]

Operation = Callable[[Catalog, str, Any], Any]


def create_app(data: Path) -> Starlette:
    """Return the application over a data directory. It loads all collections before it serves requests."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.catalog = catalog = Catalog(data)
        app.state.idle_timer = idle_timer = flush.IdleTimer()
        flushing = asyncio.create_task(flush.run_forever(catalog, idle_timer))
        yield
        flushing.cancel()
        with suppress(asyncio.CancelledError):
            await flushing
        catalog.close()

    return Starlette(
        routes=_routes(),
        lifespan=lifespan,
        exception_handlers={errors.LociError: _loci_error, Exception: _unexpected_error},
    )


def _routes() -> list[Route]:
    return [
        Route("/", _welcome),
        *(Route(path, _healthy) for path in ("/healthz", "/livez", "/readyz")),
        *(Route(path, _endpoint(operation), methods=[method]) for method, path, operation in _OPERATIONS),
        Route("/{path:path}", _unknown, methods=_METHODS),
    ]


async def _welcome(request: Request) -> Response:
    del request
    return _json({"title": "Loci's local vector store, on Qdrant's engine", "version": VERSION})


async def _healthy(request: Request) -> Response:
    del request
    return PlainTextResponse("healthz check passed")


def _endpoint(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        content = await request.body()
        start = time.perf_counter()
        request.app.state.idle_timer.interrupt()
        _check_parameters(request)
        name = request.path_params.get("name", "")
        result = operation(request.app.state.catalog, name, _parse_json(content))
        return _json({"result": result, "status": "ok", "time": time.perf_counter() - start})

    return endpoint


def _check_parameters(request: Request) -> None:
    for name in request.query_params:
        if name not in _PARAMETERS:
            raise errors.Invalid(name, "this parameter is not supported here")


def _parse_json(content: bytes) -> Any:
    try:
        return orjson.loads(content) if content else {}
    except orjson.JSONDecodeError as error:
        raise errors.Invalid("body", f"Format error in JSON body: {error}") from None


async def _unknown(request: Request) -> Response:
    # 400 and not 404, because to a client 404 means that a collection or a point is missing.
    return _error_response(
        400, f"{request.method} {request.url.path} is not supported by the local vector store"
    )


async def _loci_error(request: Request, error: Exception) -> Response:
    del request
    return _error_response(
        next(code for kind, code in _STATUSES.items() if isinstance(error, kind)), str(error)
    )


async def _unexpected_error(request: Request, error: Exception) -> Response:
    del request
    return _error_response(500, f"Service internal error: {error}")


def _error_response(status: int, message: str) -> Response:
    return _json({"status": {"error": message}, "time": 0.0}, status)


def _json(content: Any, status: int = 200) -> Response:
    return Response(orjson.dumps(content), status, media_type="application/json")


def _write(read: Callable[[Any], writes.Write]) -> Operation:
    # The collection is looked up first: without it the response is 404, even if the body is invalid.
    return lambda catalog, name, body: catalog.get(name).write(read(body))


_POINTS = "/collections/{name}/points"
_OPERATIONS: list[tuple[str, str, Operation]] = [
    ("GET", "/collections", lambda c, _, __: {"collections": [{"name": name} for name in c.names]}),
    ("POST", "/collections/aliases", lambda c, _, body: c.change_aliases(body)),
    ("GET", "/aliases", lambda c, _, __: c.aliases()),
    ("PUT", "/collections/{name}", lambda c, name, body: c.create(name, body)),
    ("GET", "/collections/{name}", lambda c, name, _: c.get(name).info()),
    ("DELETE", "/collections/{name}", lambda c, name, _: c.delete(name)),
    ("GET", "/collections/{name}/exists", lambda c, name, _: {"exists": c.exists(name)}),
    ("GET", "/collections/{name}/aliases", lambda c, name, _: c.aliases(name)),
    ("PUT", "/collections/{name}/index", lambda c, name, body: c.get(name).add_index(body)),
    ("PUT", _POINTS, _write(writes.upsert)),
    ("PUT", f"{_POINTS}/vectors", _write(writes.update_vectors)),
    ("POST", f"{_POINTS}/payload", _write(writes.set_payload)),
    ("POST", f"{_POINTS}/delete", _write(writes.delete_points)),
    ("POST", f"{_POINTS}/vectors/delete", _write(writes.delete_vectors)),
    ("POST", _POINTS, lambda c, name, body: c.get(name).retrieve(queries.read_retrieval(body))),
    ("POST", f"{_POINTS}/scroll", lambda c, name, body: c.get(name).scroll(queries.read_scroll(body))),
    ("POST", f"{_POINTS}/count", lambda c, name, body: c.get(name).count(queries.read_count(body))),
    ("POST", f"{_POINTS}/query", lambda c, name, body: c.get(name).search(queries.read(body))),
    (
        "POST",
        f"{_POINTS}/query/batch",
        lambda c, name, body: c.get(name).search_batch(queries.read_batch(body)),
    ),
]
