"""A directive that a run follows, and the versions of it that a tenant has set."""

import hashlib
from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, computed_field
from sqlalchemy import RowMapping

from shared.foundation import validation

MAX_TEXT = 100_000
_SHORT = 12


class DirectiveOrigin(StrEnum):
    """Where the text of a directive comes from."""

    TENANT = "tenant"
    FILE = "file"
    BUILT_IN = "built-in"


class Directive(BaseModel):
    """A directive as it applies to a tenant now.

    `version` is the number of the tenant's own text. A file has no number, so its version is the
    beginning of its digest. `digest` is the SHA-256 of the text, in hex.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    version: str
    text: str
    origin: DirectiveOrigin
    digest: str

    @classmethod
    def create(cls, name: str, text: str, origin: DirectiveOrigin, version: str | None = None) -> "Directive":
        """Create a directive with its digest. The digest's beginning is its version unless one is given."""
        digest = sha256_hex(text)
        return cls(name=name, version=version or digest[:_SHORT], text=text, origin=origin, digest=digest)


class DirectiveVersion(BaseModel):
    """A text that a tenant has set. A blank one means that the file applies again."""

    model_config = ConfigDict(frozen=True)

    name: str
    version: int
    text: str
    created_at: datetime
    actor: str

    @classmethod
    def from_row(cls, row: RowMapping) -> "DirectiveVersion":
        """Read a version from a row of `directive`."""
        return cls.model_validate({**row})

    @computed_field  # type: ignore[prop-decorator]
    @property
    def digest(self) -> str:
        """The SHA-256 of the text, in hex."""
        return sha256_hex(self.text)

    @property
    def is_blank(self) -> bool:
        """Whether this version removes the tenant's own text."""
        return validation.is_blank(self.text)

    def as_directive(self) -> Directive:
        """Return this version as the directive that a run follows."""
        return Directive.create(self.name, self.text, DirectiveOrigin.TENANT, str(self.version))


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()
