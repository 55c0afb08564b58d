"""The benchmark of what is remembered reads each fate off a running stack, with its own stand-in model."""

import json
from pathlib import Path

import pytest

from benchmarks.truth import data, facts, merges, model_server, rewritings
from benchmarks.truth.gateway import Gateway
from benchmarks.truth.outcome import Ending, Fate, Outcome
from benchmarks.truth.proposer import Proposer
from tests.conftest import Stores
from tests.journey.stack import fork_stack
from tests.process_pool import ProcessPool
from tests.unit.truth import labelled


@pytest.fixture
async def outcomes(process_pool: ProcessPool, stores: Stores, tmp_path: Path) -> dict[str, Outcome]:
    """Measure the made-up data without a judge, and return the outcomes by their texts."""
    file = tmp_path / "truth.json"
    file.write_text(json.dumps(labelled.content()), encoding="utf-8")
    truth_data = data.read(file)
    proposer = Proposer(truth_data.dialogues)
    with (
        model_server.serving("proposer", proposer.reply_to) as address,
        fork_stack(
            process_pool, stores, tmp_path, "work", "beat", llm_base_url=address, dream_enabled=False
        ) as stack,
    ):
        async with stack.client(stack.running.key) as client:
            gateway = Gateway(client)
            found = await facts.measure(gateway, proposer, truth_data.dialogues)
            found += await rewritings.measure(gateway, proposer, truth_data.rewrites)
            found += await merges.measure(gateway, proposer, truth_data.merges)
    return {outcome.text: outcome for outcome in found}


async def test_each_item_has_the_fate_that_the_stack_gave_it(outcomes: dict[str, Outcome]) -> None:
    assert len(outcomes) == 5 + 2 + 2
    assert outcomes["The user lives in Vejle."].fate is Fate.STORED
    assert outcomes["The user lives in Horsens now."].ending is Ending.CONTESTED
    assert outcomes["The blue kettle leaks."].fate is Fate.STORED
    assert outcomes["The blue kettle leaks."].is_found is not None
    assert outcomes["Ida likes tea, green tea too."].fate is Fate.STORED
    wrong_texts = ["The blue kettle never leaks. | The blue kettle leaks.", "Ida never likes tea."]
    assert all(outcomes[text].fate is not Fate.STORED for text in wrong_texts)
    assert outcomes["Ida never likes tea."].fate is Fate.HELD
