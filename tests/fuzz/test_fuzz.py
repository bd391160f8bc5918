"""A few damaged inputs for each target, the same ones each time. `make fuzz` tries many more."""

from random import Random

import pytest

from tests.fuzz.targets import TARGETS

INPUTS = {"configuration": 400, "store_answers": 200, "recordings": 40}
FEW = 150


@pytest.mark.parametrize("name", TARGETS)
async def test_nothing_escapes(name: str) -> None:
    for seed in range(INPUTS.get(name, FEW)):
        try:
            await TARGETS[name](Random(seed))
        except Exception as error:
            raise AssertionError(f"seed {seed} escapes") from error
