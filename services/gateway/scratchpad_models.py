"""The bodies of responses about scratchpads and reports, for the OpenAPI document."""

from datetime import datetime

from services.gateway.api_model import ApiModel
from shared.conversation.scratchpad.snippet import Snippet


class WrittenSnippet(Snippet):
    """A snippet that was written, and what was unavailable: without Redis it is stored all the same."""

    degraded: list[str]


class ScratchpadResponse(ApiModel):
    """The snippets of a session, oldest first, and what was unavailable. There is always one page."""

    results: list[Snippet]
    next_cursor: None = None
    degraded: list[str]


class ReportResponse(ApiModel):
    """A saved report, and the promotion that it began."""

    id: str
    session_id: str
    title: str
    content: str
    created_at: datetime
    promotion_id: str
