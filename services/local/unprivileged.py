"""Run Postgres, which refuses to run as root, from a process of root.

The first choice is a user namespace in which root is mapped to `nobody`. The files still belong to
root, so a data directory below a private folder of root works, and no account is created.

Most containers forbid namespaces, and inside one root may be unable to enter a folder (`sudo` in a
private home). The second choice is to become `nobody` with the one capability that opens folders.
The user must be in /etc/passwd, because `initdb` looks it up there.
"""

import os
import pwd
import subprocess
from pathlib import Path

from shared.foundation import errors

_NAME = "nobody"
_CAPABILITY = "-all,+dac_override"


def command_prefix(folder: Path, program: Path) -> list[str]:
    """Return the words to put before a command line of `program` that works in `folder`.

    The list is empty unless this process runs as root. Raises Misconfigured if neither way works.
    """
    if os.geteuid() != 0:
        return []
    for prefix in (_namespace(), _account()):
        if _works([*prefix, str(program), "--version"]) and _works([*prefix, "test", "-d", f"{folder}/."]):
            return prefix
    raise errors.Misconfigured(
        "Postgres does not run as root, and neither unshare nor setpriv can lower the rights here:"
        " start Loci as another user, or set LOCI_POSTGRES_URL"
    )


def change_owner(folder: Path, prefix: list[str]) -> None:
    """Make the user that the prefix switches to the owner of the folder and all its content."""
    owner = pwd.getpwnam(_NAME).pw_uid if prefix and prefix == _account() else os.geteuid()
    if folder.stat().st_uid == owner:
        return
    for parent, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            os.chown(Path(parent, name), owner, -1, follow_symlinks=False)


def _namespace() -> list[str]:
    user = pwd.getpwnam(_NAME)
    return ["unshare", "--user", f"--map-user={user.pw_uid}", f"--map-group={user.pw_gid}"]


def _account() -> list[str]:
    user = pwd.getpwnam(_NAME)
    return [
        *("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"),
        *(f"--inh-caps={_CAPABILITY}", f"--ambient-caps={_CAPABILITY}"),
        # Without this bit, access(2) ignores the capability. Postgres looks for its own files with it.
        "--securebits=+no_setuid_fixup",
    ]


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
