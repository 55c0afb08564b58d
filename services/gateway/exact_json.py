"""The body of a request as it was sent, number by number."""

from typing import Annotated

from fastapi import Depends, Request

from shared.foundation.exact_json import ExactJson


async def _exact_body(request: Request) -> ExactJson:
    return ExactJson(await request.body())


ExactBodyDep = Annotated[ExactJson, Depends(_exact_body)]
