"""The models that the installation asks."""

from dataclasses import asdict

from services.gateway.authenticated_route import authenticated_router
from services.gateway.dependencies import ReadCaller, ResourcesDep
from services.gateway.model_responses import ModelsResponse
from services.gateway.responses import JsonResponse
from shared.verification import configured_models

router = authenticated_router(prefix="/v1/models", tags=["operations"])


@router.get("", response_model=ModelsResponse)
async def list_models(resources: ResourcesDep, caller: ReadCaller) -> JsonResponse:
    """List the language model, the judge and the embedding model, with the host that serves each.

    The judge says whether evidence supports what is to be stored. Its verdicts decide only while it is
    `trusted`: `figures` are how many of its answers to labelled questions were right, by type and language.
    """
    del caller
    models = await configured_models.list_models(resources)
    return JsonResponse({"models": [asdict(model) for model in models]})
