"""Every test of a manifest runs on every variant of it."""

import pytest

from tests.deploy.kustomize import Object
from tests.deploy.variants import VARIANTS, objects


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def rendered(variant: str) -> list[Object]:
    return objects(variant)
