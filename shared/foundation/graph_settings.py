"""The settings of the knowledge graph: what of it a context shows, and how long what is over is kept."""

from typing import ClassVar

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class GraphSettings(BaseSettings):
    """The part of the settings that is about the knowledge graph."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    context_graph_triples: int = Field(15, ge=0, le=100)
    """Triples that a context shows of what is connected with the message's entities. 0 leaves them out."""
    context_graph_hops: int = Field(2, ge=1, le=2)
    """How far from the message's entities these triples may be."""
    dream_graph_days: int = Field(14, ge=1)
    """The age in days from which dreams invalidate triples of a confidence under 0.4, events that no message
    was about, and entities that no message was about and no triple names."""
    retention_graph_days: int = Field(90, ge=1)
    """Days that invalidated triples and expired entities are kept, and can be restored."""
