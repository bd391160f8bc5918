"""What makes a bill wrong is said in every format, and a bill can be made again and compared."""

import json
import re
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podgpu.cli.main import main
from tests.e2e import victoria
from tests.e2e.past import BETA_AT_MIDNIGHT, HOUR, LENGTH, Past
from tests.e2e.rig import demo

pytestmark = pytest.mark.skipif(victoria.PROGRAM is None, reason="victoria-metrics is not installed")

PAGE = (Path(__file__).parents[2] / "docs/report.md").read_text()
FORMATS = ("table", "wide", "csv", "json", "yaml", "markdown", "focus")
PRICES = {"currency": "EUR", "gpu_hour": {"NVIDIA H200": "3.50", "*": "1"}}
BILLED = ("gpu_seconds", "busy_seconds", "energy_joules")
WARNED, FAILED, GAPS = 1, 2, 3


@pytest.fixture(scope="module")
def past() -> Past:
    return Past.recent()


@pytest.fixture(scope="module")
def store(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with victoria.victoria(tmp_path_factory.mktemp("store")) as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        yield url


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps(PRICES))
    return file


Report = Callable[..., tuple[int, str, str]]


@pytest.fixture
def report(store: str, past: Past, prices: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """Return the exit status and what is on stdout and stderr."""

    def make(*more: str) -> tuple[int, str, str]:
        times = [f"--from={written(past.start)}", f"--to={written(past.start + LENGTH)}"]
        try:
            status = main(["report", f"--prometheus.url={store}", *times, f"--price={prices}", *more])
        except SystemExit as end:
            status = int(str(end.code))
        return status, *capsys.readouterr()

    return make


def written(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


def test_a_bill_that_is_made_again_is_the_same(report: Report, tmp_path: Path) -> None:
    bill = tmp_path / "bill.json"
    for more in (
        ("--by=pod",),
        ("--by=team", "--basis=used", "--share=held"),
        ("--basis=greater", "-n", "ml"),
    ):
        bill.write_text(report("-o", "json", *more)[1])
        assert report(f"--verify={bill}") == (0, f"{bill}: the same as the store says now\n", "")


def test_a_row_that_was_changed_is_named(report: Report, tmp_path: Path) -> None:
    bill = tmp_path / "bill.json"
    document = json.loads(report("-o", "json", "--by=pod")[1])
    [row] = [row for row in document["rows"] if row.get("pod") == "web-0"]
    was, row["cost"] = row["cost"], 17.5
    bill.write_text(json.dumps(document))
    status, out, errors = report(f"--verify={bill}")
    assert (status, out) == (WARNED, f"{bill}: not the same as the store says now\n")
    assert errors == f"! group/ml/web-0: cost 17.5 -> {was}\n"


def test_a_row_that_is_only_in_the_file_or_only_in_the_store_is_named(report: Report, tmp_path: Path) -> None:
    bill = tmp_path / "bill.json"
    document = json.loads(report("-o", "json", "--by=pod")[1])
    rows = [row for row in document["rows"] if row.get("pod") != "web-0"]
    document["rows"] = [*rows, {"namespace": "ml", "pod": "ghost-0", "row": "group", "cost": 9.5}]
    bill.write_text(json.dumps(document))
    status, _, errors = report(f"--verify={bill}")
    assert status == WARNED
    assert "! group/ml/ghost-0: cost 9.5 -> -" in errors
    assert "! group/ml/web-0: " in errors


def test_a_node_whose_first_sample_lies_on_midnight_is_billed_alike_by_day_and_in_all(
    prices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    past = Past.recent(BETA_AT_MIDNIGHT)
    period = [f"--from={written(past.start)}", f"--to={written(past.start + LENGTH)}"]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        line = ["report", f"--prometheus.url={url}", f"--price={prices}", *period]
        assert main([*line, "-o", "json"]) == 0
        digest = json.loads(capsys.readouterr().out)["inputs_sha256"]
        assert main([*line, "-o", "focus"]) == 0
        assert digest in capsys.readouterr().out


def test_a_series_that_came_into_the_store_afterwards_is_found(
    past: Past, prices: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    period = [f"--from={written(past.start)}", f"--to={written(past.start + LENGTH)}"]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        line = ["report", f"--prometheus.url={url}", f"--price={prices}", "--by=pod"]
        assert main([*line, *period, "-o", "json"]) == 0
        bill = tmp_path / "bill.json"
        bill.write_text(capsys.readouterr().out)
        labels = 'node="alpha",gpu="0",uuid="GPU-alpha",namespace="ml",pod="late-bill-0",container="main",mig=""'
        labels += ',job="podgpu",instance="alpha-0"'
        counter = f"podgpu_container_allocated_seconds_total{{{labels}}}"
        stamps = [(past.start + at) * 1000 for at in (6 * HOUR, 6 * HOUR + 60)]
        victoria.keep(url, f"{counter} 30 {stamps[0]}\n{counter} 60 {stamps[1]}\n")
        assert main([*line, f"--verify={bill}"]) == WARNED
        out, errors = capsys.readouterr()
    assert out == f"{bill}: not the same as the store says now\n"
    assert "! group/ml/late-bill-0: cost - -> 0.06" in errors
    assert "gpu_seconds - -> 60.0" in errors


def renamed(line: str) -> Iterator[str]:
    """A scrape job of its own that names nodes by their racks, without honor_labels."""
    yield re.sub(r'\bnode="', 'node="rack-7",exported_node="', line)


def twice(line: str) -> Iterator[str]:
    """Two servers. The second one scrapes right before the agent's new values, and its clock is a little ahead."""
    text, stamp = line.rsplit(" ", 1)
    yield line
    yield text.replace("job=", 'replica="b",job=') + f" {int(stamp) + 60_020}"


def by_two_jobs(line: str) -> Iterator[str]:
    """Two jobs of one server. The second one is without honor_labels."""
    yield line
    for moved in renamed(line):
        text, stamp = moved.rsplit(" ", 1)
        text = re.sub("(namespace|pod|container)=", r"exported_\1=", text).replace(
            'job="', 'pod="podgpu-x",job="other-'
        )
        yield f"{text} {int(stamp) + 7_000}"


def doubled(line: str) -> Iterator[str]:
    """Two agents on each node. The second one was there first, and has counted more."""
    text, value, stamp = line.rsplit(" ", 2)
    more = 0 if "_total" not in text or "gpu_energy" in text or ("pod=" in text and "trainer" not in text) else 5000
    yield line
    yield text.replace('instance="', 'instance="second-') + f" {float(value) + more} {int(stamp) + 15_000}"


@pytest.mark.parametrize("scraped", [renamed, twice, by_two_jobs])
def test_pods_are_billed_alike_however_their_agents_are_scraped(
    past: Past, report: Report, tmp_path: Path, scraped: Callable[[str], Iterator[str]]
) -> None:
    period = [f"--from={written(past.start + 16 * HOUR)}", f"--to={written(past.start + 33 * HOUR)}", "--by=pod"]
    lines = [each for line in past.lines for each in (scraped(line) if line.startswith("podgpu_") else (line,))]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*lines, ""]))
        found, expected = (
            [row for row in json.loads(report(*period, "-o", "json", *more)[1])["rows"] if row["row"] == "group"]
            for more in ((f"--prometheus.url={url}",), ())
        )
    assert len(expected) == 3
    for row, same in zip(found, expected, strict=True):
        assert row["pod"] == same["pod"]
        # Which source is scraped last before the period may move it by a scrape interval.
        assert [row[name] for name in BILLED] == pytest.approx([same[name] for name in BILLED], rel=0.006)


def test_two_agents_that_count_differently_are_not_believed_at_the_same_time(
    past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    period = [f"--from={written(past.start + 16 * HOUR)}", f"--to={written(past.start + 33 * HOUR)}"]
    lines = [each for line in past.lines for each in (doubled(line) if line.startswith("podgpu_") else (line,))]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*lines, ""]))
        assert main(["report", f"--prometheus.url={url}", *period, "-o", "json"]) == GAPS
        found = json.loads(capsys.readouterr().out)
    assert {dispute["node"]: dispute["reason"] for dispute in found["disputes"]} == {
        "alpha": "targets",
        "beta": "targets",
    }
    assert {row["row"] for row in found["rows"]} == {"unseen"}
    assert not found["complete"]


@pytest.mark.parametrize("document", [None, "{}", "no JSON", '{"rows": []}'])
def test_what_is_no_bill_cannot_be_made_again(report: Report, tmp_path: Path, document: str | None) -> None:
    bill = tmp_path / "bill.json"
    if document is not None:
        bill.write_text(document)
    status, out, errors = report(f"--verify={bill}")
    assert (status, out) == (FAILED, "")
    assert str(bill) in errors


def test_the_commands_of_the_page_run_as_they_stand_there(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, with every price file of the page, but on this store and of its two days."""
    monkeypatch.chdir(tmp_path)
    files = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if text.startswith("currency")]
    commands = re.findall(r"^\$ podgpu report (?!.*focus-parquet)(.*)$", PAGE, re.MULTILINE)
    assert len(files) == 2 and len(commands) >= 4
    for text in files:
        Path("prices.yaml").write_text(text)
        for command in commands:
            line, _, target = command.partition(" >")
            words = [word for word in shlex.split(line) if not re.match("--(from|to|period|prometheus.url)=", word)]
            status, out, errors = report(*words)
            assert status == 0, (command, errors)
            Path(target or "none").write_text(out)


def test_energy_is_billed_by_the_prices_of_the_page(report: Report, tmp_path: Path) -> None:
    [text] = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "kwh" in text]
    file = tmp_path / "prices.yaml"
    file.write_text(text)
    bill = json.loads(report("--basis=energy", f"--price={file}", "-o", "json")[1])
    assert bill["total"]["cost"] == pytest.approx(bill["total"]["energy_kwh"] * 0.30, rel=0.05)
    file.write_text(text[: text.rindex("kwh")])
    status, out, errors = report("--basis=energy", f"--price={file}")
    assert (status, out) == (FAILED, "")
    assert "--basis=energy needs a price of energy; add kwh" in errors


@pytest.mark.parametrize("output", FORMATS)
class TestInEveryFormat:
    def test_a_time_without_data(self, report: Report, output: str) -> None:
        status, out, errors = report("--from=2020-01-01", "--to=2020-02-01", "-o", output)
        assert (status, out) == (FAILED, "")
        assert "store_empty: the store has no samples of podgpu" in errors

    def test_an_unknown_label(self, report: Report, output: str) -> None:
        status, out, errors = report("--by=taem", "-o", output)
        assert (status, out) == (FAILED, "")
        assert "--by=taem: no pod has such a label in this time; the agents show team; did you mean team?" in errors

    def test_the_address_of_an_agent(self, agent: str, report: Report, output: str) -> None:
        status, out, errors = report(f"--prometheus.url={agent}", "-o", output)
        assert (status, out) == (FAILED, "")
        assert f"{agent} is a podgpu agent or cluster, not a store; give the address of Prometheus" in errors

    def test_a_period_that_is_not_over(self, report: Report, output: str) -> None:
        status, out, errors = report("--to=2099-01-01", "--allow-gaps", "-o", output)
        assert status == WARNED
        assert "! --to=2099-01-01 is in the future: the period is not over" in errors
        says(out, output, notices=["--to=2099-01-01 is in the future"], complete=False)

    def test_a_model_without_a_price(self, report: Report, prices: Path, output: str) -> None:
        prices.write_text(json.dumps({"currency": "EUR", "gpu_hour": {"NVIDIA H200": "3.50"}}))
        status, out, errors = report("-o", output)
        if output == "focus":
            assert (status, out) == (FAILED, "")
            assert "FOCUS needs every price; add NVIDIA L40S to the file of --price" in errors
        else:
            assert status == WARNED
            assert "! no price for NVIDIA L40S; add it to the file of --price" in errors
            says(out, output, unpriced=["NVIDIA L40S"], complete=False)

    def test_gpus_that_were_not_seen(self, report: Report, output: str) -> None:
        """Without kube-state-metrics nobody knows that a node came late and left early."""
        chosen = '--prometheus.selector=job="podgpu"'
        status, out, errors = report(chosen, "-o", output)
        assert status == GAPS
        assert "! the bill is incomplete: 28 GPU-hours of 1 GPU were not seen, on beta" in errors
        says(out, output, complete=False)
        assert report(chosen, "-o", output, "--allow-gaps")[0] == 0

    def test_a_demo(self, past: Past, prices: Path, demo_store: str, output: str, capsys: Any) -> None:
        period = [f"--from={written(past.start)}", f"--to={written(past.start + LENGTH)}"]
        line = ["report", f"--prometheus.url={demo_store}", f"--price={prices}", *period, "-o", output]
        assert main(line) == 0
        out, errors = capsys.readouterr()
        assert "! DEMO: some of these numbers are made up" in errors
        says(out, output, demo=True)

    def test_a_bill_says_what_it_is_of(self, report: Report, past: Past, output: str) -> None:
        status, out, errors = report("-o", output)
        assert (status, errors) == (0, "")
        assert written(past.start) + "Z" in out
        assert written(past.start + LENGTH) + "Z" in out
        names = ("EUR", "3.5") if output == "focus" else ("EUR", "3.5", "NVIDIA H200", "NVIDIA L40S")
        assert all(name in out for name in names)
        digest = json.loads(report("-o", "json")[1])["inputs_sha256"]
        assert digest[: 12 if output in ("table", "wide", "markdown") else 64] in out


def says(out: str, output: str, **expected: Any) -> None:
    """Programs find it in fields, people in the text above the table or on stderr."""
    if output == "json":
        document = json.loads(out)
        for name, value in expected.items():
            if name == "notices":
                assert document[name][0].startswith(value[0])
            else:
                assert document[name] == value
    elif output in ("csv", "focus"):
        for name, value in expected.items():
            assert str(value).lower() in out if isinstance(value, bool) else value[0] in out, name
    elif expected.get("demo"):
        assert "demo: true" in out if output == "yaml" else out.startswith("DEMO, ")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo(["native"], tmp_path_factory.mktemp("agent") / "log") as running:
        yield running.urls["native"]


@pytest.fixture(scope="module")
def demo_store(past: Past, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    info = f'podgpu_build_info{{node="alpha",version="1",demo="true"}} 1 {(past.start + HOUR) * 1000}'
    with victoria.victoria(tmp_path_factory.mktemp("demo")) as url:
        victoria.keep(url, "\n".join([*past.lines, info, ""]))
        yield url
