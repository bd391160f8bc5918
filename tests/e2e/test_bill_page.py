"""The bill that a cluster's page asks for, from a real VictoriaMetrics: the bytes that `podgpu report` prints."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from podgpu.cli.main import main
from tests.e2e import victoria
from tests.e2e.past import HOUR, Past
from tests.e2e.rig import cluster, get

pytestmark = pytest.mark.skipif(victoria.PROGRAM is None, reason="victoria-metrics is not installed")

PRICES = {"currency": "EUR", "gpu_hour": {"NVIDIA H200": 3.5, "*": 1}, "kwh": 0.3}


@pytest.fixture(scope="module")
def past() -> Past:
    return Past.recent()


@pytest.fixture(scope="module")
def options(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    folder = tmp_path_factory.mktemp("bill")
    prices = folder / "prices.json"
    prices.write_text(json.dumps(PRICES))
    with victoria.victoria(folder / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        yield [f"--prometheus.url={url}", f"--price={prices}"]


@pytest.fixture(scope="module")
def page(options: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with cluster(tmp_path_factory.mktemp("cluster") / "log", *options) as url:
        yield url


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize(
    "words",
    [
        {"by": "namespace"},
        {"by": "team", "share": "held"},
        {"by": "workload", "basis": "used"},
        {"by": "node", "basis": "greater", "share": "even"},
        {"by": "pod", "basis": "energy"},
    ],
    ids=lambda words: "-".join(words.values()),
)
def test_the_page_gets_what_the_command_prints(
    page: str,
    options: list[str],
    past: Past,
    words: dict[str, str],
    form: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    at = {
        name: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(past.start + seconds))
        for name, seconds in (("from", HOUR), ("to", 40 * HOUR))
    }
    flags = [f"--{name}={value}" for name, value in {**at, **words}.items()]
    main(["report", *options, *flags, "-o", form])
    answer = get(f"{page}/api/v1/report?{urlencode({**at, **words, 'format': form})}")
    assert (answer.status, answer.text) == (200, capsys.readouterr().out)


def test_the_bill_to_date_is_made_again_by_the_command(
    page: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bill.json"
    query = urlencode({"by": "team", "from": "96h", "to": "now"})
    file.write_bytes(get(f"{page}/api/v1/report?{query}").body)
    assert main(["report", *options, "--verify", str(file)]) == 0
    assert capsys.readouterr().out.endswith("the same as the store says now\n")
    document = json.loads(file.read_bytes())
    assert {row.get("label_team") for row in document["rows"] if row["row"] == "group"} == {
        "red",
        "blue",
        "green",
    }
    assert not document["complete"], "nothing was scraped in the last two hours"


def test_a_wrong_question_has_the_command_s_answer(
    page: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *options, "--by=taem", "--from=50h"]) == 2
    refused = get(f"{page}/api/v1/report?by=taem&from=50h")
    assert (refused.status, f"podgpu: {refused.text}") == (400, capsys.readouterr().err)


def test_the_document_says_that_there_is_a_store(page: str) -> None:
    assert get(f"{page}/api/v1/cluster").json()["has_store"] is True
