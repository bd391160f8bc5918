import json

import pytest

from podgpu.cli.main import main


def test_the_catalog_is_listed_as_text(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics"]) == 0
    assert "podgpu_gpu_power_watts" in capfd.readouterr().out


def test_the_catalog_is_listed_as_json(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["metrics", "-o", "json"]) == 0
    assert "podgpu_gpu_power_watts" in json.dumps(json.loads(capfd.readouterr().out))
