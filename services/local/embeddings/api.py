"""The OpenAI-compatible API of an encoder: `/v1/embeddings`, `/v1/models`, `/healthz`.

What this model cannot do (other models, other dimensions, token ids as input) is refused with
OpenAI's error format and never ignored. A client that wrongly believed it had received 1536
dimensions would store embeddings that have to be deleted later.
"""

import base64
from typing import Annotated, Any, Literal

import numpy as np
import orjson
from pydantic import BaseModel, Field, StringConstraints, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from services.local.embeddings.encoder import Encoded, Encoder

MAX_TEXTS = 2048
MAX_BODY = 32 * 1024 * 1024

Text = Annotated[str, StringConstraints(min_length=1)]


class EmbeddingRequest(BaseModel):
    """The body of a request for embeddings. Unknown fields are ignored, as OpenAI's clients expect."""

    input: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: None = None

    @property
    def texts(self) -> list[str]:
        """The input as a list."""
        return [self.input] if isinstance(self.input, str) else self.input


class RequestError(Exception):
    """The request cannot be served; carries the fields of an OpenAI error."""

    def __init__(self, message: str, param: str | None, status: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.status = status
        self.code = code


def create_app(encoder: Encoder) -> Starlette:
    """Return the application that serves the encoder's embeddings."""
    app = Starlette(
        routes=[
            Route("/v1/embeddings", _embeddings, methods=["POST"]),
            Route("/v1/models", _models),
            Route("/healthz", _healthz),
        ],
        exception_handlers={
            RequestError: _request_error,
            HTTPException: _http_error,
            Exception: _unexpected_error,
        },
    )
    app.state.encoder = encoder
    return app


async def _embeddings(request: Request) -> Response:
    encoder: Encoder = request.app.state.encoder
    embedding_request = _parse(await _body(request))
    if embedding_request.model.rsplit("/")[-1] != encoder.model.name:
        message = f"The model '{embedding_request.model}' does not exist; served is '{encoder.model.name}'."
        raise RequestError(message, "model", 404, "model_not_found")
    return _json(
        _embedding_response(
            embedding_request, encoder.model.name, await encoder.encode(embedding_request.texts)
        )
    )


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise RequestError(f"The body is larger than {MAX_BODY} bytes.", None, 413)
    return bytes(body)


def _parse(body: bytes) -> EmbeddingRequest:
    try:
        return EmbeddingRequest.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body is not valid JSON: {error}", None) from None
    except ValidationError as error:
        first_error = error.errors()[0]
        param = str(first_error["loc"][0]) if first_error["loc"] else None
        if param == "dimensions":
            raise RequestError("This model does not support specifying dimensions.", param) from None
        raise RequestError(f"'{param or 'body'}' is invalid: {first_error['msg']}", param) from None


def _embedding_response(embedding_request: EmbeddingRequest, model: str, encoded: Encoded) -> dict[str, Any]:
    is_base64 = embedding_request.encoding_format == "base64"
    vectors = [_base64(vector) for vector in encoded.vectors] if is_base64 else encoded.vectors
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": i, "embedding": vector} for i, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": encoded.tokens, "total_tokens": encoded.tokens},
    }


def _base64(vector: np.ndarray[Any, np.dtype[np.float32]]) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


async def _models(request: Request) -> Response:
    model = {"id": request.app.state.encoder.model.name, "object": "model", "created": 0, "owned_by": "local"}
    return _json({"object": "list", "data": [model]})


async def _healthz(request: Request) -> Response:
    model = request.app.state.encoder.model
    return _json({"status": "ok", "model": model.name, "dimension": model.dimension})


async def _request_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return _error(error.status, str(error), error.param, error.code)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, f"{error.detail}: {request.method} {request.url.path}", None, None)


async def _unexpected_error(_: Request, __: Exception) -> Response:
    return _error(500, "The server failed to answer.", None, None)


def _error(status: int, message: str, param: str | None, code: str | None) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return _json({"error": {"message": message, "type": kind, "param": param, "code": code}}, status)


def _json(content: object, status: int = 200) -> Response:
    body = orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)
    return Response(body, status, media_type="application/json")
