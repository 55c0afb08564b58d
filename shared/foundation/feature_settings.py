"""The settings of features that have a file of settings of their own, as one class."""

from shared.foundation.document_settings import DocumentSettings
from shared.foundation.gateway_settings import GatewaySettings
from shared.foundation.graph_settings import GraphSettings
from shared.foundation.judge_settings import JudgeSettings
from shared.foundation.mcp_settings import McpSettings
from shared.foundation.proposal_settings import ProposalSettings
from shared.foundation.skill_settings import SkillSettings


class FeatureSettings(
    DocumentSettings,
    GatewaySettings,
    GraphSettings,
    JudgeSettings,
    McpSettings,
    ProposalSettings,
    SkillSettings,
):
    """The settings of documents, gateway processes, the graph, the judge, MCP, proposals and skills."""
