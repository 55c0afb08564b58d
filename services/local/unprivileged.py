"""How to run Postgres, which refuses to be root, when we are root.

First choice: a user namespace in which our root is called `nobody`. Files stay root's own, so a
data directory below a private folder of root works, and no account is made.
Second choice, where that is forbidden (most containers) or where root's name alone does not open
the folders (`sudo` in a private home): become `nobody` with the one capability that opens folders.
The name must be in /etc/passwd, which `initdb` asks; a made-up number fails on a fresh machine.
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

    Empty unless we are root. Raises Misconfigured when there is no way.
    """
    if os.geteuid() != 0:
        return []
    for words in (_namespace(), _account()):
        if _works([*words, str(program), "--version"]) and _works([*words, "test", "-d", f"{folder}/."]):
            return words
    raise errors.Misconfigured(
        "Postgres does not run as root, and neither unshare nor setpriv can lower our rights here:"
        " start Loci as another user, or set LOCI_POSTGRES_URL"
    )


def change_owner(folder: Path, words: list[str]) -> None:
    """Give the folder and all in it to the user that the prefix runs as."""
    owner = pwd.getpwnam(_NAME).pw_uid if words and words == _account() else os.geteuid()
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
        # Without this bit access(2), by which Postgres looks for its own files, ignores the capability.
        "--securebits=+no_setuid_fixup",
    ]


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
