"""The name of an endpoint's model: that of the settings, or else that of the only model that it lists.

A name that the endpoint listed is kept as long as the process runs. So do all processes ask for the same one:
which model an index has is a column of its generation, and vectors of two models never meet.
"""

from shared.foundation import errors
from shared.foundation.stages import ReasonCode
from shared.infra.model_endpoint import ModelEndpoint, ModelIdentity

_UNNAMED = "default"
"""What is asked for if no name is set and the endpoint lists no model, or several: some accept any name."""


class ModelName:
    """The name of the model to ask for."""

    def __init__(self, endpoint: ModelEndpoint, configured: str | None) -> None:
        self._endpoint = endpoint
        self._configured = configured
        self._name = configured
        # By the settings alone, so that all processes mean the same, also before the endpoint was asked.
        self.identity: ModelIdentity = endpoint.identity(configured or _UNNAMED)

    @property
    def known(self) -> str | None:
        """The name if it is known without asking the endpoint."""
        return self._name

    @property
    def last_known(self) -> str:
        """The name, or what stands for it as long as the endpoint was not asked."""
        return self._name or _UNNAMED

    async def find(self, timeout: float | None = None) -> str:
        """Return the name; ask the endpoint once if none is set. Raises errors.Unavailable as calls do."""
        if self._name is None:
            names = await self._endpoint.list_models(timeout)
            self._name = names[0] if len(names) == 1 else _UNNAMED
        return self._name

    def note_refusal(self, refusal: errors.ModelRefused) -> None:
        """Ask for the name again after a refusal if the endpoint has listed none yet: it may be starting."""
        if self._name == _UNNAMED and refusal.reason_code is ReasonCode.MODEL_UNKNOWN:
            self._name = self._configured
