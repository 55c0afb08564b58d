"""The preferences that a domain knows: a YAML file that the operator names.

Each stands for every scope that has stored nothing under its key. What is stored is the truth, also if the
file does not allow its value any more. A caller who stores something under such a key gives it the slot that
the file names, and one of the values that it lists.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.foundation import errors, json_values
from shared.foundation.config import Settings
from shared.foundation.origin import Origin, Trust
from shared.foundation.scope import Scope
from shared.memory.preferences.preference import (
    Condition,
    Effect,
    Preference,
    PreferenceBasis,
    PreferenceDraft,
    check_key,
)


class DomainPreference(BaseModel):
    """A preference of the domain file: the rule that stands until somebody stores another.

    `values` are all that its slot may have; without them it may have any.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    condition: Condition
    effect: Effect
    related: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def validated(self, key: str) -> "DomainPreference":
        """Return it, checked as one that a caller stores. Raises errors.Invalid."""
        check_key(key)
        PreferenceDraft(condition=self.condition, effect=self.effect, related=self.related).validated()
        _check_effect(self, self.effect)
        return self

    def in_scope(self, scope: Scope, key: str) -> Preference:
        """Return it as a preference of a scope that has stored nothing under its key."""
        return Preference.model_construct(
            id="",
            tenant=scope.tenant,
            agent_id=scope.agent_id,
            user_id=None,
            key=key,
            condition=self.condition,
            effect=self.effect,
            related=list(self.related),
            basis=PreferenceBasis.DOMAIN,
            origin=Origin(trust=Trust.OPERATOR),
            requires_user_permission=False,
            permission_granted_at=None,
            memory_id=None,
            version=0,
            created_at=None,
            updated_at=None,
        )


def preferences(settings: Settings, scope: Scope) -> dict[str, Preference]:
    """Return the preferences of the file as those of a scope, by key; none without a file."""
    return {key: item.in_scope(scope, key) for key, item in read(settings).items()}


def check_effect(settings: Settings, key: str, effect: Effect) -> None:
    """Raise errors.Invalid if the file has a preference under this key that allows no such effect."""
    if (known := read(settings).get(key)) is not None:
        _check_effect(known, effect)


def _check_effect(known: DomainPreference, effect: Effect) -> None:
    if known.effect.slot is None:
        return
    if effect.slot != known.effect.slot:
        raise errors.Invalid("effect.slot", f"must be '{known.effect.slot}' under this key")
    if known.values and not json_values.is_one_of(effect.value, known.values):
        raise errors.Invalid("effect.value", f"must be one of {', '.join(map(str, known.values))}")


def read(settings: Settings) -> dict[str, DomainPreference]:
    """Return the preferences of the file by key. Raise errors.Misconfigured for one that can't be read."""
    return {} if settings.preferences_file is None else _read_file(settings.preferences_file)


@lru_cache
def _read_file(path: Path) -> dict[str, DomainPreference]:
    try:
        items = yaml.safe_load(path.read_text())["preferences"].items()
        return {key: DomainPreference.model_validate(item).validated(key) for key, item in items}
    except ValidationError as error:
        violation = error.errors(include_url=False, include_input=False)[0]
        reason = f"{'.'.join(map(str, violation['loc']))}: {violation['msg']}"
    except (OSError, yaml.YAMLError, errors.Invalid, KeyError, TypeError, AttributeError) as error:
        reason = str(error)
    rule = "must be YAML with `preferences`: a condition and an effect, perhaps related and values, by key"
    raise errors.Misconfigured(f"LOCI_PREFERENCES_FILE {path}: {rule}: {reason}")
