"""Which judge is meant: trust holds for one endpoint, one model and one text of the directive."""

from dataclasses import dataclass

from shared.infra.language_model import LanguageModel
from shared.verification import judge


@dataclass(frozen=True, slots=True)
class JudgeIdentity:
    """A judge, by its settings alone: all processes mean the same one, also before the endpoint was asked.

    `endpoint` is a digest of its host and path, `host` is for people, `model` is the name that is asked for.
    """

    endpoint: str
    host: str
    model: str
    directive_version: str


def identity_of(model: LanguageModel) -> JudgeIdentity:
    """Return the identity of a model as a judge."""
    return JudgeIdentity(model.address_digest, model.host, model.identity.model, judge.directive_version())
