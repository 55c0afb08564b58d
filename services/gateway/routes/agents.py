"""Agents: their profiles, keys, texts and files."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import Field
from starlette.responses import Response

from services.gateway import responses, state_keys
from services.gateway.api_model import ApiModel, Flag, example
from services.gateway.authenticated_route import authenticated_router
from services.gateway.context_options import ContextOptionsBody
from services.gateway.dependencies import (
    AdminCaller,
    Cursor,
    IdempotencyKeyDep,
    Limit,
    ReadCaller,
    ResourcesDep,
    WriteCaller,
)
from services.gateway.etag import Condition, KnownVersion
from services.gateway.paths import AgentPathId
from services.gateway.response_models import DeletedCount, DeletedName, DeletedRecord, ErasureReceipt, Page
from services.gateway.responses import JsonResponse
from services.gateway.state_keys import DeletedKeyResponse, Key, KeyResponse, ValueBody
from services.gateway.state_response_models import AgentFileInfo, AgentTexts
from services.gateway.subject_models import KnownSubjectPage, page_of_subjects
from shared.conversation.sessions.session import validate_store_types
from shared.conversation.state.agent_keys import open_agent_keys
from shared.foundation.scope import Caller
from shared.lifecycle import erasure, subjects
from shared.platform.agents import files, profile, texts
from shared.platform.agents.agent import Agent, AgentText, IdentityProof, TextDraft

router = authenticated_router(prefix="/v1/agents", tags=["agents"])
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
    context_options: ContextOptionsBody | None = None
    mine_facts: Flag | None = None
    mine_common: Flag | None = None

    def changes(self, caller: Caller) -> dict[str, Any]:
        """Return the named fields besides the identity. Null restores a default.

        Raise errors.Invalid for an unknown store type or a bad option of contexts, and errors.Forbidden for
        an agent among the options whose memories the key may not read.
        """
        types, options = self.store_types, self.context_options
        fields = {
            "store_types": None if types is None else validate_store_types(types),
            "context_options": None if options is None else options.options(caller).to_json(),
            "mine_facts": True if self.mine_facts is None else self.mine_facts,
            "mine_common": bool(self.mine_common),
        }
        return {name: value for name, value in fields.items() if name in self.model_fields_set}


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


@router.get("", response_model=KnownSubjectPage)
async def list_agents(
    resources: ResourcesDep, caller: ReadCaller, limit: Limit = 20, cursor: Cursor = None
) -> JsonResponse:
    """List the agents whom something is stored of, with a profile or without, by id."""
    start = responses.decode_name_cursor(cursor) or ""
    return page_of_subjects(await subjects.list_agents(resources, caller, start, limit + 1), limit)


@router.get("/{agent_id:agent}/kv", response_model=Page[KeyResponse])
async def list_agent_keys(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentPathId,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> JsonResponse:
    """List keys with their values, least recently written first. At the limit, the first is evicted."""
    return await state_keys.list_keys(open_agent_keys(resources, caller, agent_id), limit, cursor)


@router.put("/{agent_id:agent}/kv/{key:path}", response_model=KeyResponse)
async def set_agent_key(
    resources: ResourcesDep,
    caller: WriteCaller,
    agent_id: AgentPathId,
    key: Key,
    body: ValueBody,
    expected: Condition,
) -> Response:
    """Write a key, if the condition in the headers is met.

    At the limit, the key that was written least recently is evicted.
    """
    opened = open_agent_keys(resources, caller, agent_id, write=True)
    return await state_keys.set_key(opened, key, body, expected)


@router.get("/{agent_id:agent}/kv/{key:path}", response_model=KeyResponse)
async def get_agent_key(
    resources: ResourcesDep,
    caller: ReadCaller,
    agent_id: AgentPathId,
    key: Key,
    if_none_match: KnownVersion = None,
) -> Response:
    """Read a key, with its version as an entity tag."""
    return await state_keys.get_key(open_agent_keys(resources, caller, agent_id), key, if_none_match)


@router.delete("/{agent_id:agent}/kv/{key:path}", response_model=DeletedKeyResponse)
async def delete_agent_key(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, key: Key, expected: Condition
) -> JsonResponse:
    """Delete a key, if the condition in the headers is met. If there is none, `deleted` is false."""
    opened = open_agent_keys(resources, caller, agent_id, write=True)
    return await state_keys.delete_key(opened, key, expected)


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


@router.get("/{agent_id:agent}/texts", response_model=Page[AgentText])
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


@router.put("/{agent_id:agent}/texts", response_model=AgentTexts)
async def replace_texts(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, body: TextsBody
) -> JsonResponse:
    """Replace all texts of an agent with up to 1000 new ones."""
    drafts = [text.draft(f"texts.{position}.") for position, text in enumerate(body.texts)]
    saved_texts = await texts.replace(resources, caller, agent_id, drafts)
    return JsonResponse({"results": [text.model_dump(mode="json") for text in saved_texts]})


@router.delete("/{agent_id:agent}/texts", response_model=DeletedCount)
async def clear_texts(resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId) -> JsonResponse:
    """Delete all texts."""
    return JsonResponse({"deleted": await texts.remove(resources, caller, agent_id)})


@router.get("/{agent_id:agent}/texts/{text_id}", response_model=AgentText)
async def get_text(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId, text_id: TextId
) -> JsonResponse:
    """Read a text."""
    return JsonResponse((await texts.get(resources, caller, agent_id, text_id)).model_dump(mode="json"))


@router.delete("/{agent_id:agent}/texts/{text_id}", response_model=DeletedRecord)
async def delete_text(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, text_id: TextId
) -> JsonResponse:
    """Delete a text. If there is none, nothing changes and `deleted` is false."""
    deleted_count = await texts.remove(resources, caller, agent_id, text_id)
    return JsonResponse({"id": text_id, "deleted": deleted_count > 0})


@router.get("/{agent_id:agent}/files", response_model=Page[AgentFileInfo])
async def list_agent_files(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId
) -> JsonResponse:
    """List files by name."""
    agent_files = await files.list_files(resources, caller, agent_id)
    return JsonResponse({"results": [file.to_json() for file in agent_files], "next_cursor": None})


_DEFAULT_CONTENT_TYPE = "application/octet-stream"
_BINARY_CONTENT: dict[str, Any] = {
    "content": {_DEFAULT_CONTENT_TYPE: {"schema": {"type": "string", "format": "binary"}}}
}


@router.put(
    "/{agent_id:agent}/files/{name:path}",
    openapi_extra={"requestBody": _BINARY_CONTENT},
    response_model=AgentFileInfo,
)
async def put_agent_file(
    resources: ResourcesDep, caller: WriteCaller, agent_id: AgentPathId, name: FileName, request: Request
) -> JsonResponse:
    """Write a file of up to 1 MiB. Its content type is stored with it."""
    content_type = request.headers.get("content-type", _DEFAULT_CONTENT_TYPE)
    file = await files.put(resources, caller, agent_id, name, await request.body(), content_type)
    return JsonResponse(file.to_json())


@router.get(
    "/{agent_id:agent}/files/{name:path}", responses={HTTPStatus.OK: _BINARY_CONTENT}, response_class=Response
)
async def get_agent_file(
    resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId, name: FileName
) -> Response:
    """Read a file: the bytes and the content type that were written."""
    content, content_type = await files.get(resources, caller, agent_id, name)
    # As a header, because Starlette adds a charset to a text `media_type`.
    headers = {"content-type": content_type, "x-content-type-options": "nosniff"}
    return Response(content, headers=headers)


@router.delete("/{agent_id:agent}/files/{name:path}", response_model=DeletedName)
async def delete_agent_file(
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
    agent = await profile.upsert(resources, caller, agent_id, proof, body.changes(caller))
    return JsonResponse(agent.model_dump(mode="json"))


@router.get("/{agent_id:agent}", response_model=Agent)
async def get_agent(resources: ResourcesDep, caller: ReadCaller, agent_id: AgentPathId) -> JsonResponse:
    """Read an agent's profile."""
    return JsonResponse((await profile.get(resources, caller, agent_id)).model_dump(mode="json"))


@router.delete("/{agent_id:agent}", response_model=ErasureReceipt)
async def delete_agent(resources: ResourcesDep, caller: AdminCaller, agent_id: AgentPathId) -> JsonResponse:
    """Erase an agent with its profile, sessions and memories, and return the receipt.

    As with a user, a repeated request returns the last receipt, and 202 says that rows are deleted later.
    """
    return responses.receipt_response(await erasure.delete_agent(resources, caller, agent_id))
