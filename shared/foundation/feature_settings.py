"""The settings of features that have a file of settings of their own, as one class."""

from shared.foundation.document_settings import DocumentSettings
from shared.foundation.gateway_settings import GatewaySettings
from shared.foundation.graph_settings import GraphSettings
from shared.foundation.mcp_settings import McpSettings
from shared.foundation.skill_settings import SkillSettings


class FeatureSettings(DocumentSettings, GatewaySettings, GraphSettings, McpSettings, SkillSettings):
    """The settings of documents, of gateway processes, of the knowledge graph, of MCP and of skills."""
