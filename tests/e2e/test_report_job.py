"""The chart's CronJob: its very command line, in an environment without anything else, on a real Prometheus."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import chart
from tests.deploy.test_report_chart import PRICES, container, job, of_report
from tests.e2e import prometheus
from tests.e2e.months.month import DAY, HOUR, Month, MonthNode, Stay, Tenant

pytestmark = [
    chart.needs_helm,
    pytest.mark.skipif(prometheus.PROGRAM is None, reason="prometheus is not installed"),
]
UUID = "GPU-1"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A GPU whose agent is off for six hours of each day. There is a day more, should one end meanwhile."""
    folder = tmp_path_factory.mktemp("store")
    start = time.time() // DAY * DAY - DAY
    month = Month("prod", start, start + 3 * DAY, 300, has_kubernetes=False)
    first, last = month.whole
    off = [start + number * DAY + 6 * HOUR for number in range(3)]
    agents = zip([first, *(at + 6 * HOUR for at in off)], [*off, last + 1], strict=True)
    month.nodes.append(MonthNode("node-1", (first, last), tuple(agents), 7))
    month.stays.append(Stay("node-1", UUID, "NVIDIA H200", first, last + 1))
    month.tenants.append(Tenant(UUID, "train", "ml", "red", "", 1.0, 0.5, first, last + 1))
    prometheus.keep(month.lines(), folder)
    (folder / "prometheus.yml").write_text("{}")
    with prometheus.started(folder / "prometheus.yml", folder) as here:
        yield here.url


def run_job(values: chart.Object, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Put its files where they are mounted, but below a folder of the test's own."""
    found = of_report(values)
    only = container(found)
    mounts = {each["name"]: each["mountPath"] for each in only["volumeMounts"]}

    def local(text: str) -> str:
        for path in sorted(mounts.values(), key=len, reverse=True):
            text = text.replace(path, f"{folder}/mounts{path}")
        return text

    for path in mounts.values():
        Path(local(path)).mkdir(parents=True)
    data = chart.only(found, "ConfigMap")["data"]
    for volume in job(found)["template"]["spec"]["volumes"]:
        for name in data if "configMap" in volume else ():
            Path(local(mounts[volume["name"]]), name).write_text(local(data[name]))
    line = [sys.executable, "-m", "podgpu", *shlex.split(local(shlex.join(only["args"])))]
    environment = {each["name"]: each["value"] for each in only.get("env", ())}
    return subprocess.run(
        line,
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


@pytest.mark.parametrize(("least", "code"), [(0.99, 3), (0.5, 0)], ids=["too-little-seen", "enough-seen"])
def test_the_job_writes_the_bill_and_fails_where_too_little_was_seen(
    store: str, tmp_path: Path, least: float, code: int
) -> None:
    values = {
        "schedule": "30 2 * * *",
        "period": "day",
        "store": store,
        "by": "namespace",
        "coverage": least,
        "prices": PRICES,
    }
    done = run_job({"report": values}, tmp_path)
    assert done.returncode == code, done.stderr
    assert "6 GPU-hours of 1 GPU were not seen" in done.stderr
    assert "DEMO" not in done.stdout and "(not seen)" in done.stdout
    files = {file.name.partition(".")[2]: file for file in (tmp_path / "mounts/bills").iterdir()}
    assert files.keys() == {"csv", "focus.csv", "json"}
    bill = json.loads(files["json"].read_text())
    assert bill["complete"] is False
    assert bill["coverage"]["ratio"] == pytest.approx(0.75, abs=0.01)
    assert bill["total"]["cost"] == pytest.approx(24 * 3.5)
    # The failure is one that the Job does not try again.
    (rule,) = job(of_report({"report": values}))["podFailurePolicy"]["rules"]
    assert (code in rule["onExitCodes"]["values"]) == (code != 0)
