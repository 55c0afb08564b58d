"""Decide whether a preference needs the user's permission, and who may give it: code does, for any writer.

What speaks of money, security or credentials needs it. A user gives it with a key of their own, by writing
the rule. A rule of an agent has no user to ask: a key that is bound to nobody gives it, as the operator's.
What anybody else writes takes no such need away, and is no permission for another rule than the user saw.
"""

from typing import Any

from sqlalchemy import func

from shared.foundation import json_values
from shared.foundation.scope import Caller, Scope
from shared.foundation.sensitive_topics import is_sensitive, is_sensitive_name
from shared.memory.preferences.preference import Condition, Effect, Preference, PreferenceDraft


def is_about_sensitive(key: str, condition: Condition, effect: Effect) -> bool:
    """Tell whether the key, the condition or the effect of a rule is about money, security or credentials."""
    names = [name for name in (key, condition.flow, effect.slot) if name is not None]
    texts = [text for text in (condition.description, effect.template) if text is not None]
    texts += json_values.texts_of(effect.value)
    return any(map(is_sensitive_name, names)) or any(map(is_sensitive, texts))


def columns(
    caller: Caller,
    scope: Scope,
    key: str,
    draft: PreferenceDraft,
    before: Preference | None,
    *,
    by_model: bool,
) -> dict[str, Any]:
    """Return the columns about permission of a rule that a caller writes over `before`.

    A model that writes it gives none, whosever key it calls with.
    """
    is_sensitive_rule = is_about_sensitive(key, draft.condition, draft.effect)
    if not by_model and _may_give(caller, scope):
        given_at = func.now() if is_sensitive_rule else None
        return {"requires_user_permission": is_sensitive_rule, "permission_granted_at": given_at}
    is_required = is_sensitive_rule or (before is not None and before.requires_user_permission)
    granted_at = before.permission_granted_at if before is not None and _says_same(before, draft) else None
    return {"requires_user_permission": is_required, "permission_granted_at": granted_at}


def _may_give(caller: Caller, scope: Scope) -> bool:
    if scope.user_id is not None:
        return caller.user_id == scope.user_id
    return caller.agent_id is None and caller.user_id is None


def _says_same(before: Preference, draft: PreferenceDraft) -> bool:
    is_same_effect = json_values.are_same(before.effect.model_dump(), draft.effect.model_dump())
    return is_same_effect and before.condition == draft.condition
