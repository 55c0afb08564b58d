"""No tracked file contains a path of one machine or the address of a package registry."""

import re
from pathlib import Path

from tests.architecture.tree import tracked

# In parts, so that this file does not contain them.
_REGISTRIES = ("py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs", "deb." + "debian.org")
_MIRRORS = r"(?:artifactory|nexus|devpi|jfrog|goproxy)[\w.-]*\.\w+"
_PATHS = r"/(?:wo" + r"rk/(?:main|shared)|ro" + r"ot/|home/\w+/)"
_FOREIGN = re.compile("|".join([*map(re.escape, _REGISTRIES), "https?://[^/ ]*" + _MIRRORS, _PATHS]))
_BINARY = {".png", ".jpg", ".gif", ".ico", ".woff2", ".gz", ".zip", ".onnx"}


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine(repository: Path) -> None:
    files = [path for path in tracked(repository) if path.suffix not in _BINARY]
    assert len(files) > 100
    matches = {
        f"{path.relative_to(repository)}:{number}: {match[0]}"
        for path in files
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1)
        for match in _FOREIGN.finditer(line)
    }
    assert not matches
