"""Run the local vector index: a small server of Loci that speaks Qdrant's protocol.

pip cannot install a Qdrant server. `services.local.vectors` explains what replaces it. All other
code talks to it by its URL, as to any Qdrant.
"""

import sys

from services.local import http_probe, ports, private_file
from services.local.server import LocalServer


class Qdrant(LocalServer):
    """One server on 127.0.0.1. Its folder also holds `data/`."""

    name = "qdrant"

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://{ports.HOST}:{self._port}"

    def _command(self) -> list[str]:
        data = private_file.folder(self._folder / "data")
        # -P: without it, Python would import a folder named `services` in the current directory.
        module = [sys.executable, "-P", "-m", "services.local.vectors"]
        return [*module, "--port", str(self._port), "--data", str(data)]

    def _is_ready(self) -> bool:
        return http_probe.responds_ok(ports.HOST, self._port or 0)
