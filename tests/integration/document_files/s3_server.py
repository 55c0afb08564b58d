"""A real server of S3-compatible storage: `rclone serve s3`, on a folder and with a key."""

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from services.local import ports

_BUCKET = "files"
_START_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where the server listens, its key, and the folder of its bucket."""

    url: str
    access_key_id: str
    secret_access_key: str
    folder: Path

    def settings(self, **changes: object) -> dict[str, object]:
        """Return the settings with which Loci uses this server."""
        return {
            "s3_endpoint": self.url,
            "s3_bucket": _BUCKET,
            "s3_access_key_id": self.access_key_id,
            "s3_secret_access_key": self.secret_access_key,
            **changes,
        }

    def objects_of(self, tenant: str) -> set[str]:
        """Return the names of a tenant's objects."""
        return {path.name for path in (self.folder / tenant).rglob("*") if path.is_file()}


@contextmanager
def s3_server(root: Path) -> Iterator[S3Server]:
    """Run a server with an empty bucket until the block ends."""
    (root / _BUCKET).mkdir(parents=True)
    port, key, secret = ports.pick_free_port(), secrets.token_hex(8), secrets.token_hex(16)
    program = Path(sys.executable).parent / "rclone"
    address = f"{ports.HOST}:{port}"
    options = (f"--addr={address}", f"--auth-key={key},{secret}", f"--config={root / 'rclone.conf'}")
    with subprocess.Popen([program, "serve", "s3", *options, root], stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_it_answers(f"http://{address}")
            yield S3Server(f"http://{address}", key, secret, root / _BUCKET)
        finally:
            process.kill()


def _wait_until_it_answers(url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            httpx.get(url, timeout=1)
        except httpx.HTTPError:
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
        else:
            return
