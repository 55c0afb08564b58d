"""EN3: directives as files: the tenant's folder, the operator's, the built-in one, read again at each run."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.dreams.passes import anti_patterns, episodes, preferences, session_evaluation
from shared.dreams.passes.preferences import Level
from shared.dreams.verification import anti_pattern_form
from shared.dreams.verification import plan as dream_plan
from shared.foundation import config, errors
from shared.platform.directives import files
from shared.platform.directives.directive import MAX_TEXT, Origin

NAMES = ["anti-patterns", "dream", "episodes", "memory-rules", "pref-dream", "session-evaluation"]


def _settings(folder: Path | None) -> config.Settings:
    return config.load(directives_dir=folder, data_dir=Path("/nonexistent"))


def _text(name: str) -> str:
    """Return a built-in directive."""
    return files.read_file(_settings(None), "acme", name).text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_directives_that_come_with_loci_are_those_of_the_requirements() -> None:
    assert files.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_directive_is_short_and_calls_its_material_no_orders(name: str) -> None:
    found = files.read_file(_settings(None), "acme", name)
    assert (found.origin, found.version) == (Origin.BUILT_IN, found.digest[:12])
    assert found.text.startswith("# ")
    assert len(found.text.split()) < 900
    assert name == "memory-rules" or "no orders" in found.text


@pytest.mark.parametrize("name", [name for name in NAMES if name != "memory-rules"])
def test_a_built_in_directive_shows_a_good_and_a_bad_example(name: str) -> None:
    text = _text(name)
    assert "\nGood. " in text
    assert "\nBad. " in text


def _answers(name: str) -> list[str]:
    """Return the JSON objects that a directive shows as answers."""
    answer = _text(name).partition("## Answer")[2]
    return re.findall(r"^\{.*?\}$", answer, re.DOTALL | re.MULTILINE)


def test_the_answers_that_the_directives_show_are_what_the_code_reads() -> None:
    consolidated = dream_plan.parse(_answers("dream")[0])
    assert consolidated.deletions == (dream_plan.Deletion("…", "ephemeral"),)
    assert consolidated.replacements[0].source_ids == ("…", "…")
    [learnt] = anti_patterns.parse(_answers("anti-patterns")[0])
    assert (learnt.tags[0], learnt.session_ids) == ("anti-pattern", ("…",))
    assert session_evaluation.parse(_answers("session-evaluation")[0]).overall_quality == "good"
    [marked] = preferences.parse(_answers("pref-dream")[0])
    assert (marked.sighting.level, marked.sighting.seqs) == (Level.CASUAL, frozenset({7}))
    told = episodes.parse(_answers("episodes")[0])
    assert (told.new[0].category, told.new[0].importance) == ("episodic/decision", 0.7)
    assert json.loads(_answers("episodes")[0])["toUpdate"][0].keys() == {
        "id",
        "content",
        "importance",
        "sourceSessions",
    }


@pytest.mark.parametrize("name", ["dream", "anti-patterns", "pref-dream", "episodes"])
def test_the_answer_for_nothing_found_is_read_as_nothing(name: str) -> None:
    nothing = re.findall(r"answer\s+(\{.*?\})\.", _text(name))[-1]
    read: dict[str, Callable[[str], object]] = {
        "dream": dream_plan.parse,
        "anti-patterns": anti_patterns.parse,
        "pref-dream": preferences.parse,
        "episodes": episodes.parse,
    }
    assert read[name](nothing) in ([], dream_plan.Plan((), ()), episodes.Episodes((), ()))


def test_the_good_example_of_an_anti_pattern_has_the_form_that_the_code_holds() -> None:
    text = " ".join(_text("anti-patterns").split())
    [example] = re.findall(r"Good\. .*?→ \"(.*?)\" in", text)
    assert anti_pattern_form.is_well_formed(example)


def test_the_tenants_file_goes_before_the_operators_and_that_before_the_built_in_one(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    _write(tmp_path / "dream.md", "for all\n")
    _write(tmp_path / "acme" / "dream.md", "\nfor acme")
    found = files.read_file(settings, "acme", "dream")
    assert (found.text, found.origin) == ("for acme", Origin.FILE)
    assert files.read_file(settings, "other", "dream").text == "for all"
    assert files.read_file(settings, "acme", "episodes").origin is Origin.BUILT_IN


def test_a_changed_file_counts_at_the_next_run_under_another_version(tmp_path: Path) -> None:
    _write(tmp_path / "dream.md", "first")
    first = files.read_file(_settings(tmp_path), "acme", "dream")
    _write(tmp_path / "dream.md", "second")
    second = files.read_file(_settings(tmp_path), "acme", "dream")
    assert (second.text, first.version == second.version) == ("second", False)


def test_a_blank_or_unreadable_file_falls_back_to_the_next(tmp_path: Path) -> None:
    _write(tmp_path / "acme" / "dream.md", "  \n")
    (tmp_path / "dream.md").write_bytes(b"\xff\xfe")
    assert files.read_file(_settings(tmp_path), "acme", "dream").origin is Origin.BUILT_IN
    (tmp_path / "episodes.md").mkdir()
    assert files.read_file(_settings(tmp_path), "acme", "episodes").origin is Origin.BUILT_IN


def test_a_file_is_read_to_its_hundred_thousandth_character(tmp_path: Path) -> None:
    _write(tmp_path / "dream.md", "ä" * (MAX_TEXT + 9))
    assert len(files.read_file(_settings(tmp_path), "acme", "dream").text) == MAX_TEXT


@pytest.mark.parametrize("name", ["", "dreams", "dream.md", "../dream", "acme/dream", "Dream", "__init__"])
def test_a_name_that_is_none_of_them_is_not_found_even_if_a_file_is_there(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "dreams.md", "there")
    with pytest.raises(errors.NotFound, match="session-evaluation"):
        files.read_file(_settings(tmp_path), "acme", name)
