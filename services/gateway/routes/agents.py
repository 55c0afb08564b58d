"""Agents: their profiles, keys, texts and files."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.responses import Response

from services.gateway import responses, state_keys
from services.gateway.api_model import ApiModel, example
from services.gateway.dependencies import (
    AdminCaller,
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.paths import AgentPathId
from services.gateway.responses import JsonResponse
from services.gateway.state_keys import Key, KeyResponse, ValueBody
from shared.conversation.sessions.session import validate_store_types
from shared.conversation.state.agent_keys import open_agent_keys
from shared.lifecycle import erasure
from shared.platform.agents import files, profile, texts
from shared.platform.agents.agent import Agent, AgentText, IdentityProof, TextDraft

router = APIRouter(prefix="/v1/agents", tags=["agents"])
TextId = Annotated[str, Path(examples=["01890a5d-ac96-774b-bcce-b302099a8057"])]
FileName = Annotated[str, Path(examples=["avatar.png"])]
_TEXT = {"content": "Answer in the language of the question.", "metadata": {"kind": "rule"}}


class AgentBody(ApiModel):
    """Fields of an agent's profile to set. The identity is derived from key and document together, once."""

    model_config = example(
        {
            "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHk1",
            "document": "I am the support agent of Example Ltd.",
            "store_types": ["basic_session"],
        }
    )

    public_key: str | None = None
    document: str | None = None
    store_types: list[str] | None = None

    def changes(self) -> dict[str, list[str] | None]:
        """Return the named fields besides the identity. Null restores a default.

        Raise errors.Invalid for an unknown store type.
        """
        if "store_types" not in self.model_fields_set:
            return {}
        return {"store_types": None if self.store_types is None else validate_store_types(self.store_types)}


class TextBody(ApiModel):
    """A text of an agent."""

    model_config = example(_TEXT)

    content: str
    metadata: dict[str, str] = {}

    def draft(self, field_prefix: str = "") -> TextDraft:
        """Return the text to save. Raise errors.Invalid if it breaks a rule; its field follows the prefix."""
        return TextDraft(**self.model_dump()).validated(field_prefix)


class TextsBody(ApiModel):
    """The texts that replace all texts of an agent."""

    model_config = example({"texts": [_TEXT]})

    texts: Annotated[list[TextBody], Field(max_length=1000)]


@router.get("/{agent_id:agent}/kv")
async def list_keys(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentPathId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List keys with their values, least recently written first. At the limit, the first is evicted."""
    return await state_keys.list_keys(open_agent_keys(resources, caller, agent_id), limit, cursor)


@router.put("/{agent_id:agent}/kv/{key:path}", response_model=KeyResponse)
async def set_key(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, key: Key, body: ValueBody
) -> JsonResponse:
    """Write a key. At the limit, the key that was written least recently is evicted."""
    return await state_keys.set_key(open_agent_keys(resources, caller, agent_id, write=True), key, body)


@router.get("/{agent_id:agent}/kv/{key:path}", response_model=KeyResponse)
async def get_key(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId, key: Key
) -> JsonResponse:
    """Read a key."""
    return await state_keys.get_key(open_agent_keys(resources, caller, agent_id), key)


@router.delete("/{agent_id:agent}/kv/{key:path}")
async def delete_key(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, key: Key
) -> JsonResponse:
    """Delete a key. If there is none, nothing changes and `deleted` is false."""
    return await state_keys.delete_key(open_agent_keys(resources, caller, agent_id), key)


@router.post("/{agent_id:agent}/texts", status_code=HTTPStatus.CREATED, response_model=AgentText)
async def push_text(
    resources: ResourcesDep,
    caller: WriteCaller,
    agent_id: AgentPathId,
    body: TextBody,
    idempotency_key: IdempotencyKeyDep,
) -> JsonResponse:
    """Add a text."""
    return JsonResponse(
        await texts.push(resources, caller, agent_id, body.draft(), idempotency_key), HTTPStatus.CREATED
    )


@router.get("/{agent_id:agent}/texts")
async def list_texts(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentPathId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List texts in the order in which they were added."""
    rows = await texts.page(resources, caller, agent_id, limit + 1, responses.decode_cursor(cursor))
    return responses.page_response(
        rows, limit, lambda row: row.model_dump(mode="json"), lambda row: (row.created_at, row.id)
    )


@router.put("/{agent_id:agent}/texts")
async def replace_texts(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, body: TextsBody
) -> JsonResponse:
    """Replace all texts of an agent with up to 1000 new ones."""
    drafts = [text.draft(f"texts.{position}.") for position, text in enumerate(body.texts)]
    saved_texts = await texts.replace(resources, caller, agent_id, drafts)
    return JsonResponse({"results": [text.model_dump(mode="json") for text in saved_texts]})


@router.delete("/{agent_id:agent}/texts")
async def clear_texts(resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId) -> JsonResponse:
    """Delete all texts."""
    return JsonResponse({"deleted": await texts.remove(resources, caller, agent_id)})


@router.get("/{agent_id:agent}/texts/{text_id}", response_model=AgentText)
async def get_text(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId, text_id: TextId
) -> JsonResponse:
    """Read a text."""
    return JsonResponse((await texts.get(resources, caller, agent_id, text_id)).model_dump(mode="json"))


@router.delete("/{agent_id:agent}/texts/{text_id}")
async def delete_text(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, text_id: TextId
) -> JsonResponse:
    """Delete a text. If there is none, nothing changes and `deleted` is false."""
    deleted_count = await texts.remove(resources, caller, agent_id, text_id)
    return JsonResponse({"id": text_id, "deleted": deleted_count > 0})


@router.get("/{agent_id:agent}/files")
async def list_files(resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId) -> JsonResponse:
    """List files by name."""
    agent_files = await files.list_files(resources, caller, agent_id)
    return JsonResponse({"results": [file.to_json() for file in agent_files], "next_cursor": None})


_DEFAULT_CONTENT_TYPE = "application/octet-stream"
_BINARY_CONTENT: dict[str, Any] = {
    "content": {_DEFAULT_CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}}
}


@router.put("/{agent_id:agent}/files/{name:path}", openapi_extra={"requestBody": _BINARY_CONTENT})
async def put_file(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, name: FileName, request: Request
) -> JsonResponse:
    """Write a file of up to 1 MiB. Its content type is stored with it."""
    content_type = request.headers.get("content-type", _DEFAULT_CONTENT_TYPE)
    file = await files.put(resources, caller, agent_id, name, await request.body(), content_type)
    return JsonResponse(file.to_json())


@router.get(
    "/{agent_id:agent}/files/{name:path}", responses={HTTPStatus.OK: _BINARY_CONTENT}, response_class=Response
)
async def get_file(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId, name: FileName
) -> Response:
    """Read a file: the bytes and the content type that were written."""
    content, content_type = await files.get(resources, caller, agent_id, name)
    # As a header, because Starlette adds a charset to a text `media_type`.
    headers = {"content-type": content_type, "x-content-type-options": "nosniff"}
    return Response(content, headers=headers)


@router.delete("/{agent_id:agent}/files/{name:path}")
async def delete_file(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, name: FileName
) -> JsonResponse:
    """Delete a file. If there is none, nothing changes and `deleted` is false."""
    return JsonResponse({"name": name, "deleted": await files.remove(resources, caller, agent_id, name)})


@router.put("/{agent_id:agent}", response_model=Agent)
async def put_agent(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, body: AgentBody
) -> JsonResponse:
    """Create or change an agent's profile. A key or document that the identity was not made of is a 409."""
    proof = IdentityProof.parse(body.public_key, body.document)
    agent = await profile.upsert(resources, caller, agent_id, proof, body.changes())
    return JsonResponse(agent.model_dump(mode="json"))


@router.get("/{agent_id:agent}", response_model=Agent)
async def get_agent(resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId) -> JsonResponse:
    """Read an agent's profile."""
    return JsonResponse((await profile.get(resources, caller, agent_id)).model_dump(mode="json"))


@router.delete("/{agent_id:agent}")
async def delete_agent(resources: ResourcesDep, caller: AdminCaller, agent_id: AgentPathId) -> JsonResponse:
    """Erase an agent with its profile, sessions and memories, and return the receipt.

    As with a user, a repeated request returns the last receipt, and 202 says that rows are deleted later.
    """
    return responses.receipt_response(await erasure.delete_agent(resources, caller, agent_id))
