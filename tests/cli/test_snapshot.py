import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podgpu.cli.main import main


def printed(capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["snapshot", "--source=simulator", "--node-name=node-7", *arguments]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    return out


def test_json_holds_the_whole_node(capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capfd, "-o", "json"))
    assert document["node"] == "node-7"
    assert document["demo"] is True
    assert len(document["cards"]) == 8


def test_prom_is_a_page_that_prometheus_reads(capfd: pytest.CaptureFixture[str]) -> None:
    families = {family.name for family in text_string_to_metric_families(printed(capfd, "-o", "prom"))}
    assert {"podgpu_up", "podgpu_gpu_up", "podgpu_gpu_power_watts"} <= families


def test_the_table_is_the_default_and_uncoloured_in_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    out = printed(capfd)
    assert "DEMO" in out
    assert "H200" in out
    assert "\x1b" not in out


def test_without_a_driver_it_prints_what_there_is_and_why(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["snapshot", "-o", "json", f"--nvml.library={Path(__file__)}"]) == 1
    out, err = capfd.readouterr()
    assert json.loads(out)["cards"] == []
    assert err.startswith("nvml: ")
    assert len(err.splitlines()) == 1
