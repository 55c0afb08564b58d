"""MM3: the domain file is read whole and checked like what a caller stores."""

from pathlib import Path

import pytest

from shared.foundation import config, errors
from shared.foundation.scope import Scope
from shared.memory.preferences import domain_file
from shared.memory.preferences.preference import Effect, PreferenceBasis

RULE = "  depth: {condition: {flow: f}, effect: {slot: depth, value: 1}, values: [1, 2]}\n"


def settings_of(tmp_path: Path, content: str) -> config.Settings:
    path = tmp_path / "preferences.yaml"
    path.write_text(content)
    return config.load(preferences_file=path)


def test_the_example_is_valid_and_stands_for_any_scope(repository: Path) -> None:
    settings = config.load(preferences_file=repository / "examples/preferences/analyst.yaml")
    found = domain_file.preferences(settings, Scope("t", "inn", "ada"))
    assert found.keys() == {"analysis-depth", "time-horizon", "persona"}
    assert {(item.basis, item.version, item.agent_id) for item in found.values()} == {
        (PreferenceBasis.DOMAIN, 0, "inn")
    }
    assert domain_file.preferences(config.load(), Scope("t")) == {}


@pytest.mark.parametrize(
    ("effect", "rule"),
    [
        (Effect(slot="depth", value=2), None),
        (Effect(slot="depth", value=3), "effect.value: must be one of 1, 2"),
        (Effect(slot="depth", value=True), "effect.value: must be one of 1, 2"),
        (Effect(slot="depth", value=2.0), "effect.value: must be one of 1, 2"),
        (Effect(slot="other", value=1), "effect.slot: must be 'depth'"),
        (Effect(template="t"), "effect.slot: must be 'depth'"),
    ],
)
def test_under_a_key_of_the_file_a_caller_gives_its_slot_a_listed_value(
    tmp_path: Path, effect: Effect, rule: str | None
) -> None:
    settings = settings_of(tmp_path, f"preferences:\n{RULE}")
    domain_file.check_effect(settings, "unlisted", effect)
    if rule is None:
        domain_file.check_effect(settings, "depth", effect)
        return
    with pytest.raises(errors.Invalid, match=rule):
        domain_file.check_effect(settings, "depth", effect)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("- a list", "list indices"),
        ("preferences: {depth: {condition: {flow: f}}}", "effect: Field required"),
        ("preferences: {depth: {condition: {}, effect: {template: t}}}", "must have a flow or a description"),
        ("preferences: {depth: {condition: {flow: f}, effect: {}}}", "must have a slot"),
        ("preferences: {depth: {condition: {flow: f}, effect: {slot: s}}}", "a slot and a value together"),
        (
            "preferences: {depth: {condition: {flow: f}, effect: {slot: s, value: 1}, values: [2]}}",
            "one of 2",
        ),
        ("preferences: {a/../b: {condition: {flow: f}, effect: {template: t}}}", "'..' segment"),
        ("preferences: {depth: {condition: {flow: f}, effect: {template: t}, more: 1}}", "more: Extra"),
        ("preferences: [", "while parsing"),
    ],
)
def test_a_bad_file_is_named_with_the_reason(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(errors.Misconfigured, match=r"LOCI_PREFERENCES_FILE") as raised:
        domain_file.read(settings_of(tmp_path, content))
    assert reason in str(raised.value)
