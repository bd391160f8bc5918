"""The file with the prices of GPUs."""

from pathlib import Path

import pytest

from podgpu.config import PriceOptions
from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.model import Prices

YAML = """\
currency: EUR
gpu_hour:
  NVIDIA H200: 3.50
  "*L40S*": 0.9
  "*": 2
"""


def read(folder: Path, text: str) -> Prices:
    path = folder / "prices.yaml"
    path.write_text(text)
    found = load({"price": [str(path)]}, {}).of(PriceOptions).price
    assert found is not None
    return found


def test_the_name_comes_first_and_then_the_first_pattern_that_fits(tmp_path: Path) -> None:
    prices = read(tmp_path, YAML)
    assert prices.currency == "EUR"
    assert [prices.of(model) for model in ("NVIDIA H200", "NVIDIA L40S", "NVIDIA L4")] == [3.5, 0.9, 2.0]


def test_json_is_taken_too(tmp_path: Path) -> None:
    prices = read(tmp_path, '{"currency": "$", "gpu_hour": {"NVIDIA H200": 3.5}}')
    assert prices.of("NVIDIA H200") == 3.5
    assert prices.of("NVIDIA L4") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must hold currency and gpu_hour"),
        ("gpu_hour: {A: 1}", "currency must be a short word"),
        ("currency: EUR", "gpu_hour must hold a price for each model"),
        ("currency: EUR\ngpu_hour: 3", "gpu_hour must hold a price for each model"),
        ("currency: EUR\ngpu_hour: {A: -1}", "the price of 'A' must be a number without a sign"),
        ("currency: EUR\ngpu_hour: {A: 1e5}", "the price of 'A' must be a number"),
        ("currency: EUR\ngpu_hour: {A: three}", "the price of 'A' must be a number"),
        ("currency: EUR\ngpu_hour: {A: [1]}", "the price of 'A' must be a number"),
        ("currency: EUR\ngpu_hours: {A: 1}", "unknown key 'gpu_hours'; did you mean gpu_hour?"),
        ("currency: EUR\ngpu_hour:\n  A: 1\n  A: 2", "appears twice"),
        ("currency: [", "not valid YAML"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)
