"""Several requests in one."""

from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import Field

from services.gateway import errors as gateway_errors
from services.gateway.api_model import ApiModel, BatchApiModel, example, parse
from services.gateway.authenticated_route import authenticated_router
from services.gateway.batch import Operation, key_of_operation, operation_runner
from services.gateway.dependencies import IdempotencyKeyDep, ResourcesDep, caller_of
from services.gateway.exact_json import ExactBodyDep
from services.gateway.responses import JsonResponse
from shared.foundation import errors
from shared.foundation.scope import Caller
from shared.platform.idempotency import first_use

router = authenticated_router(prefix="/v1", tags=["batch"])


class OperationsBody(BatchApiModel):
    """Operations to run, in order. Each is accepted or refused on its own."""

    model_config = example(
        {
            "operations": [
                {"method": "POST", "path": "/v1/memories", "body": {"content": "The gate closes at nine."}},
                {"method": "GET", "path": "/v1/memories?limit=5"},
            ]
        }
    )

    operations: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]


class OperationResult(ApiModel):
    """The response to one operation, as a request of its own would have got it."""

    status: int
    body: Any
    headers: dict[str, str] = {}


class OperationResults(ApiModel):
    """The results, in the order of the operations."""

    results: list[OperationResult]


@router.post("/batch", response_model=OperationResults)
async def run_batch(
    request: Request,
    resources: ResourcesDep,
    caller: Annotated[Caller, Depends(caller_of)],
    body: OperationsBody,
    exact_body: ExactBodyDep,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Run up to 100 operations in order. One that fails doesn't stop the rest.

    With an Idempotency-Key, each operation that takes one gets a key of its own, derived from it. A
    repetition does what the first try did not get to; while that still runs, it is a 409.
    """
    await first_use.note(resources.postgres, caller.tenant, idempotency_key)
    run = operation_runner(request, caller)
    results: list[dict[str, Any]] = []
    for position, item in enumerate(body.operations):
        try:
            operation = parse(Operation, item)
            content = operation.content(exact_body, position)
        except errors.Invalid as error:
            problem = gateway_errors.problem_from_error(error)
            results.append({"status": problem["status"], "body": problem})
            continue
        results.append(await run(operation, content, key_of_operation(idempotency_key, position)))
    return JsonResponse({"results": results})
