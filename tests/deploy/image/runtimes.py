"""Two ways to run a container: by runc, as a cluster's node does, and by chroot where the kernel refuses.

In both, the root file system is read-only, /tmp is in memory, and the process has the user of its manifest,
no capability and no way to gain rights. It shares the network of this machine, where the databases are.
"""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from tests.deploy.image.container import Container, Runtime, Specification
from tests.deploy.image.tools import Failed, run

_ROOT = Path("/run/loci-image-check")
_MOUNTS = (
    ("/proc", "proc", ()),
    ("/dev", "tmpfs", ("nosuid", "strictatime", "mode=755", "size=65536k")),
    ("/dev/shm", "tmpfs", ("nosuid", "noexec", "nodev", "mode=1777", "size=65536k")),  # noqa: S108
    ("/tmp", "tmpfs", ("nosuid", "nodev", "mode=1777", "size=256m")),  # noqa: S108
)
_PREPARE_CHROOT = """
set -e
root=$1 mode=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -t tmpfs -o nosuid,nodev,mode=1777,size=256m tmpfs "$root/tmp"
mount -o "remount,bind,$mode" "$root"
exec "$@"
"""


class Runc:
    """Containers with namespaces, a memory limit, and only the devices that every container has."""

    def start_command(self, specification: Specification, root: Path, folder: Path) -> list[str]:
        """Write the description of the container, and return the command that runs it."""
        (folder / "config.json").write_text(json.dumps(_describe(specification, root)))
        return ["runc", "--root", str(_ROOT), "run", "--bundle", str(folder), specification.name]

    def execute_command(self, specification: Specification, _root: Path, _pid: int) -> list[str]:
        """Return the words before a command in the container."""
        return ["runc", "--root", str(_ROOT), "exec", specification.name]

    def signal(self, specification: Specification, _pid: int, number: signal.Signals) -> None:
        """Send a signal to the first process of the container."""
        run("runc", "--root", _ROOT, "kill", specification.name, number.name)


class Chroot:
    """Processes in mount and process namespaces of their own, without a memory limit."""

    def start_command(self, specification: Specification, root: Path, _folder: Path) -> list[str]:
        """Return the command that runs the container."""
        mode = "ro" if specification.read_only else "rw"
        prepare = ["sh", "-c", _PREPARE_CHROOT, "sh", str(root), mode]
        namespaces = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        return [*namespaces, *prepare, *_enter(specification, root), *specification.command]

    def execute_command(self, specification: Specification, root: Path, pid: int) -> list[str]:
        """Return the words before a command in the container."""
        namespaces = ["nsenter", f"--target={_first_process(pid)}", "--mount", "--pid"]
        return [*namespaces, *_enter(specification, root)]

    def signal(self, _specification: Specification, pid: int, number: signal.Signals) -> None:
        """Send a signal to the first process of the container."""
        os.kill(_first_process(pid), number)


def choose(root: Path, folder: Path, *, without_runc: bool) -> tuple[Runtime, str]:
    """Return runc, or chroot with the message of the kernel or runc that refuses to run a container."""
    if without_runc:
        return Chroot(), "chroot, as asked"
    trial = Specification("loci-check-trial", ("true",), {"PATH": "/usr/bin"}, 10001, 10001, True, 2**28)
    container = Container(trial, root, folder, Runc())
    container.start()
    try:
        code = container.wait(60)
    except subprocess.TimeoutExpired:
        container.kill()
        code = -1
    if code == 0:
        return Runc(), run("runc", "--version").splitlines()[0]
    return Chroot(), f"chroot, because {container.failure('was refused')}"


def _enter(specification: Specification, root: Path) -> list[str]:
    """Return the words that enter the root file system and give up all rights."""
    return [
        *("chroot", str(root), "setpriv", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"),
        *(f"--reuid={specification.user}", f"--regid={specification.group}", "--clear-groups"),
        *("env", "-i", "--chdir=/tmp"),
        *(f"{name}={value}" for name, value in specification.variables.items()),
    ]


def _first_process(pid: int) -> int:
    """Return the only child of `unshare`, which is the first process of its namespace."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    if not children:
        raise Failed("the container has ended")
    return int(children[0])


def _describe(specification: Specification, root: Path) -> dict[str, Any]:
    """Return the description of the container for runc (OCI runtime specification)."""
    kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": specification.user, "gid": specification.group},
            "args": list(specification.command),
            "env": [f"{variable}={value}" for variable, value in specification.variables.items()],
            "cwd": "/tmp",  # noqa: S108
            "capabilities": {kind: [] for kind in kinds},
            "noNewPrivileges": True,
        },
        "root": {"path": str(root), "readonly": specification.read_only},
        "mounts": [
            {"destination": path, "type": kind, "source": kind, "options": list(options)}
            for path, kind, options in _MOUNTS
        ],
        "linux": {
            "cgroupsPath": f"/{specification.name}",
            "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")],
            "resources": {"memory": {"limit": specification.memory_bytes}},
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list"],
            "readonlyPaths": ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"],
        },
    }
