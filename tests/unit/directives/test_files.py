"""EN3: directives as files: the tenant's folder, the operator's, the built-in one, read again at each run."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.conversation.feedback import judge
from shared.dreams.passes import anti_patterns, episodes, preferences, session_evaluation
from shared.dreams.passes.preferences import Level
from shared.dreams.verification import anti_pattern_form, fact_plan, graph_plan
from shared.dreams.verification import plan as dream_plan
from shared.foundation import config, errors
from shared.platform.directives import files
from shared.platform.directives.directive import MAX_TEXT, DirectiveOrigin

NAMES = [
    "anti-patterns",
    "corrections",
    "dream",
    "episodes",
    "graph",
    "graph-consolidation",
    "memory-rules",
    "mine-facts",
    "pref-dream",
    "promotion",
    "session-evaluation",
    "skill-consolidation",
    "skill-gaps",
    "skill-optimisation",
    "skill-summary",
    "summary",
]


def _settings(folder: Path | None) -> config.Settings:
    return config.load(directives_dir=folder, data_dir=Path("/nonexistent"))


def _text(name: str) -> str:
    """Return a built-in directive."""
    return files.read_file(_settings(None), "acme", name).text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_built_in_directives_are_complete() -> None:
    assert files.names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_directive_is_short_and_says_that_its_input_gives_no_orders(name: str) -> None:
    directive = files.read_file(_settings(None), "acme", name)
    assert (directive.origin, directive.version) == (DirectiveOrigin.BUILT_IN, directive.digest[:12])
    assert directive.text.startswith("# ")
    assert len(directive.text.split()) < 900
    assert name == "memory-rules" or "no orders" in directive.text


@pytest.mark.parametrize("name", [name for name in NAMES if name != "memory-rules"])
def test_a_built_in_directive_shows_a_good_and_a_bad_example(name: str) -> None:
    text = _text(name)
    assert "\nGood. " in text
    assert "\nBad. " in text


def _example_replies(name: str) -> list[str]:
    """Return the JSON objects that a directive shows as replies."""
    answer = _text(name).partition("## Answer")[2]
    return re.findall(r"^\{.*?\}$", answer, re.DOTALL | re.MULTILINE)


def test_the_example_replies_of_the_directives_can_be_parsed() -> None:
    plan = dream_plan.parse(_example_replies("dream")[0])
    assert plan.deletions == (dream_plan.Deletion("…", "ephemeral"),)
    assert plan.replacements[0].source_ids == ("…", "…")
    [anti_pattern] = anti_patterns.parse(_example_replies("anti-patterns")[0])
    assert (anti_pattern.tags[0], anti_pattern.session_ids) == ("anti-pattern", ("…",))
    assert judge.parse(_example_replies("corrections")[0], count=2) == {1: True, 2: False}
    assert session_evaluation.parse(_example_replies("session-evaluation")[0]).overall_quality == "good"
    [occurrence] = preferences.parse(_example_replies("pref-dream")[0])
    assert (occurrence.evidence.level, occurrence.evidence.seqs) == (Level.CASUAL, frozenset({7}))
    [fact] = fact_plan.parse(_example_replies("mine-facts")[0])
    assert (fact.relation, fact.sources) == (fact_plan.Relation.NEW, (("session-id", 3),))
    episode_plan = episodes.parse(_example_replies("episodes")[0])
    assert (episode_plan.new[0].category, episode_plan.new[0].importance) == ("episodic/decision", 0.7)
    plan_of_graph = graph_plan.parse(_example_replies("graph")[0])
    assert (plan_of_graph.entities[0].type, plan_of_graph.entities[0].sources) == (
        "Person",
        (("session-id", 3),),
    )
    assert (plan_of_graph.triples[0].subject, plan_of_graph.triples[0].predicate) == ("e1", "works_on")
    assert json.loads(_example_replies("episodes")[0])["toUpdate"][0].keys() == {
        "id",
        "content",
        "importance",
        "sourceSessions",
    }


@pytest.mark.parametrize("name", ["dream", "anti-patterns", "mine-facts", "pref-dream", "episodes", "graph"])
def test_the_example_reply_for_nothing_is_parsed_as_nothing(name: str) -> None:
    reply = re.findall(r"answer\s+(\{.*?\})\.", _text(name))[-1]
    parsers: dict[str, Callable[[str], object]] = {
        "dream": dream_plan.parse,
        "anti-patterns": anti_patterns.parse,
        "mine-facts": fact_plan.parse,
        "pref-dream": preferences.parse,
        "episodes": episodes.parse,
        "graph": graph_plan.parse,
    }
    assert parsers[name](reply) in (
        [],
        dream_plan.Plan((), ()),
        episodes.Episodes((), ()),
        graph_plan.GraphPlan(),
    )


def test_the_good_example_of_an_anti_pattern_is_well_formed() -> None:
    text = " ".join(_text("anti-patterns").split())
    [example] = re.findall(r"Good\. .*?→ \"(.*?)\" in", text)
    assert anti_pattern_form.is_well_formed(example)


def test_the_tenants_file_goes_before_the_operators_and_that_before_the_built_in_one(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    _write(tmp_path / "dream.md", "for all\n")
    _write(tmp_path / "acme" / "dream.md", "\nfor acme")
    directive = files.read_file(settings, "acme", "dream")
    assert (directive.text, directive.origin) == ("for acme", DirectiveOrigin.FILE)
    assert files.read_file(settings, "other", "dream").text == "for all"
    assert files.read_file(settings, "acme", "episodes").origin is DirectiveOrigin.BUILT_IN


def test_a_changed_file_counts_at_the_next_run_under_another_version(tmp_path: Path) -> None:
    _write(tmp_path / "dream.md", "first")
    first = files.read_file(_settings(tmp_path), "acme", "dream")
    _write(tmp_path / "dream.md", "second")
    second = files.read_file(_settings(tmp_path), "acme", "dream")
    assert (second.text, first.version == second.version) == ("second", False)


def test_a_blank_or_unreadable_file_falls_back_to_the_next(tmp_path: Path) -> None:
    _write(tmp_path / "acme" / "dream.md", "  \n")
    (tmp_path / "dream.md").write_bytes(b"\xff\xfe")
    assert files.read_file(_settings(tmp_path), "acme", "dream").origin is DirectiveOrigin.BUILT_IN
    (tmp_path / "episodes.md").mkdir()
    assert files.read_file(_settings(tmp_path), "acme", "episodes").origin is DirectiveOrigin.BUILT_IN


def test_a_file_is_cut_after_a_hundred_thousand_characters(tmp_path: Path) -> None:
    _write(tmp_path / "dream.md", "ä" * (MAX_TEXT + 9))
    assert len(files.read_file(_settings(tmp_path), "acme", "dream").text) == MAX_TEXT


@pytest.mark.parametrize("name", ["", "dreams", "dream.md", "../dream", "acme/dream", "Dream", "__init__"])
def test_an_unknown_name_is_not_found_even_if_a_file_exists(tmp_path: Path, name: str) -> None:
    _write(tmp_path / "dreams.md", "there")
    with pytest.raises(errors.NotFound, match="session-evaluation"):
        files.read_file(_settings(tmp_path), "acme", name)
