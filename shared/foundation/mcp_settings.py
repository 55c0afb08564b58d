"""The settings of MCP: of the endpoint, and of `loci mcp`, which forwards to a gateway."""

from typing import ClassVar

from pydantic import SecretStr, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shared.foundation.host_names import host_of

ANY_HOST = "*"


class McpSettings(BaseSettings):
    """The part of the settings that is about MCP."""

    model_config: ClassVar[SettingsConfigDict] = SettingsConfigDict(use_attribute_docstrings=True)

    mcp_hosts: str = "127.0.0.1,localhost,[::1]"
    """The hosts that a request to `/mcp` may name in `Host` and `Origin`, with any port; `*` for every host.
    Otherwise a page in a browser could reach a gateway under a name of its own."""

    url: str | None = None
    """The gateway that `loci mcp` forwards to. Unset means the one on this machine, at `LOCI_PORT`."""
    api_key: SecretStr | None = None
    """The key that `loci mcp` sends. Unset means the development key in the data directory."""

    @field_validator("mcp_hosts")
    @classmethod
    def _require_names(cls, value: str) -> str:
        """Refuse an address where a name belongs: it would allow no request, and nobody would know why."""
        if any(host != ANY_HOST and host_of(host) is None for host in _split(value)):
            raise ValueError("must be names of hosts, separated by commas, or *")
        return value

    @property
    def mcp_host_list(self) -> tuple[str, ...]:
        """The hosts that a request to `/mcp` may name."""
        return _split(self.mcp_hosts)


def _split(hosts: str) -> tuple[str, ...]:
    return tuple(host.strip() for host in hosts.split(",") if host.strip())
