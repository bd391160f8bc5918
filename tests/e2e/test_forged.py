"""A tenant's own page, scraped like any other, says things about podgpu's nodes. Nobody is billed by it."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from podgpu.cli.main import main
from tests.e2e import prometheus, victoria
from tests.e2e.past import HOUR, Past
from tests.e2e.prometheus import Job
from tests.e2e.rig import demo, eventually

pytestmark = pytest.mark.skipif(
    prometheus.PROGRAM is None or victoria.PROGRAM is None,
    reason="prometheus or victoria-metrics is not installed",
)

GAPS = 3
AGENTS, TENANTS = "podgpu", "tenants/web"
HELD = "podgpu_container_allocated_seconds_total"
START, END = 16 * HOUR, 33 * HOUR

Forge = Callable[[str], str]


def as_scraped(line: str) -> str:
    """The line as a scrape of the tenant's page leaves it: `job` and `instance` are those of the target."""
    text, stamp = re.sub(r'instance="[^"]*"', 'instance="10.0.0.66:80"', line).rsplit(" ", 1)
    text = re.sub(r'\bjob="[^"]*"', f'job="{TENANTS}"', text)
    return f"{text} {int(stamp) + 15_000}"


def valued(line: str, value: str) -> str:
    text, _, stamp = line.rsplit(" ", 2)
    return f"{text} {value} {stamp}"


def constant_zero(line: str) -> str:
    """Between two scrapes of the agent the victim's counter is 0: each looks like a restart."""
    if line.startswith("podgpu_gpu_info"):
        return line
    return valued(line, "0") if line.startswith(HELD) and "trainer" in line else ""


def counter_alone(line: str) -> str:
    """The same without a card that it would belong to."""
    return constant_zero(line) if line.startswith(HELD) else ""


def names_exchanged(line: str) -> str:
    names = {"trainer-0": "web-0", "web-0": "trainer-0"}
    return re.sub("trainer-0|web-0", lambda name: names[name[0]], line)


def invented_gpu(line: str) -> str:
    return re.sub('uuid="GPU-[a-z]*"', 'uuid="GPU-invented"', line)


def labels_moved(line: str) -> str:
    """As if a scrape without honor_labels had renamed the node's own label."""
    return names_exchanged(line).replace('node="', 'exported_node="')


def own_job(line: str) -> str:
    """The page itself says that it is of podgpu's job: a scrape calls that `exported_job`."""
    return names_exchanged(line).replace(f'job="{AGENTS}"', f'exported_job="{AGENTS}",job="{AGENTS}"')


def invented_node(line: str) -> str:
    return line.replace('node="alpha"', 'node="nowhere"') if 'node="alpha"' in line else ""


FORGED = (constant_zero, counter_alone, names_exchanged, invented_gpu, labels_moved, own_job, invented_node)


def written(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))


@pytest.fixture(scope="module")
def past() -> Past:
    return Past.recent()


@pytest.fixture(scope="module")
def told(past: Past) -> list[str]:
    return [line for line in past.lines if line.startswith("podgpu_")]


@contextmanager
def forged_store(past: Past, told: list[str], forge: Forge, folder: Path) -> Iterator[str]:
    forged = [as_scraped(line) for line in map(forge, told) if line]
    assert forged
    with victoria.victoria(folder / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, *forged, ""]))
        yield url


def bill(url: str, past: Past, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Any]:
    period = [f"--from={written(past.start + START)}", f"--to={written(past.start + END)}", "--by=pod", "-o", "json"]
    status = main(["report", f"--prometheus.url={url}", *period, *more])
    return status, json.loads(capsys.readouterr().out)


def held(document: Any) -> dict[str, float]:
    return {row["pod"]: row["gpu_hours"] for row in document["rows"] if row["row"] == "group"}


@pytest.fixture
def truth(past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    with victoria.victoria(tmp_path / "truth") as url:
        victoria.keep(url, "\n".join([*past.lines, ""]))
        status, document = bill(url, past, capsys)
    assert status == 0
    assert document["jobs"] == {AGENTS: 2}
    return held(document)


@pytest.mark.parametrize("forge", FORGED)
def test_a_bill_by_the_job_of_the_agents_is_as_without_the_forged_page(
    past: Past,
    told: list[str],
    truth: dict[str, float],
    forge: Forge,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with forged_store(past, told, forge, tmp_path) as url:
        status, document = bill(url, past, capsys, f"--prometheus.job={AGENTS}")
    assert status == 0
    assert document["complete"]
    assert held(document) == truth
    assert document["ignored_jobs"] == [TENANTS]


@pytest.mark.parametrize("forge", [forge for forge in FORGED if forge not in (counter_alone, invented_node)])
def test_without_a_job_the_forged_page_is_named_and_nobody_pays_by_it(
    past: Past,
    told: list[str],
    truth: dict[str, float],
    forge: Forge,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with forged_store(past, told, forge, tmp_path) as url:
        status, document = bill(url, past, capsys)
    assert status == GAPS
    assert not document["complete"]
    assert {job for dispute in document["disputes"] for job in dispute.get("jobs", ())} == {AGENTS, TENANTS}
    assert all(hours <= truth[pod] + 0.05 for pod, hours in held(document).items())


def test_without_a_job_an_invented_node_is_named_though_it_counts(
    past: Past, told: list[str], truth: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be another pool, scraped by a job of its own. Only the user knows."""
    with forged_store(past, told, invented_node, tmp_path) as url:
        status, document = bill(url, past, capsys)
    assert status == GAPS
    assert not document["complete"]
    assert {"jobs", "place"} == {dispute["reason"] for dispute in document["disputes"]}
    assert held(document)["trainer-0"] > truth["trainer-0"]


def test_a_counter_of_a_page_without_cards_is_ignored(
    past: Past, told: list[str], truth: dict[str, float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with forged_store(past, told, counter_alone, tmp_path) as url:
        status, document = bill(url, past, capsys)
    assert (status, document["ignored_jobs"], held(document)) == (0, [TENANTS], truth)


def test_two_pages_of_one_job_that_differ_are_disputed(
    past: Past, told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where one job scrapes whatever has an annotation, agents and tenants have the same one."""
    same_job = [as_scraped(names_exchanged(line)).replace(f'job="{TENANTS}"', f'job="{AGENTS}"') for line in told]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*past.lines, *same_job, ""]))
        status, document = bill(url, past, capsys, f"--prometheus.job={AGENTS}")
    assert status == GAPS
    assert {dispute["reason"] for dispute in document["disputes"]} == {"targets"}
    assert all("10.0.0.66:80" in dispute["detail"] for dispute in document["disputes"])
    assert not held(document)


def test_more_than_a_card_can_do_is_named(
    past: Past, told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only page that speaks for a node of its own counts a hundred times too fast."""

    def too_fast(line: str) -> str:
        return valued(line, str(float(line.rsplit(" ", 2)[1]) * 100)) if "_total{" in line else line

    lines = [too_fast(line) for line in told]
    with victoria.victoria(tmp_path / "store") as url:
        victoria.keep(url, "\n".join([*lines, ""]))
        status, document = bill(url, past, capsys)
    assert status == GAPS
    assert {"held", "busy", "energy"} == {dispute["reason"] for dispute in document["disputes"]}


class _Page(BaseHTTPRequestHandler):
    text: Callable[[], str]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(type(self).text().encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(text: Callable[[], str]) -> Iterator[str]:
    handler = type("Page", (_Page,), {"text": staticmethod(text)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/metrics"
        finally:
            server.shutdown()
            thread.join()


def test_a_real_scrape_keeps_the_target_s_own_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page calls itself podgpu's job and address. Prometheus keeps its own word for that, and so does the bill."""
    with demo(["native"], tmp_path / "agent", "--node-name=victim", "--interval=1s") as agent:
        labels = f'node="victim",gpu="0",uuid="GPU-9",job="{AGENTS}",instance="{agent.urls["native"][7:]}"'
        forged = f'podgpu_gpu_info{{{labels},model="NVIDIA H200"}} 1\n{HELD}{{{labels},namespace="evil"}} 4e6\n'
        with serving(lambda: forged) as page:
            jobs = [Job(AGENTS, f"{agent.urls['native']}/metrics"), Job(TENANTS, page)]
            with prometheus.prometheus(jobs, tmp_path) as store:
                asked = [f"--prometheus.url={store.url}", f"--prometheus.job={AGENTS}", "--from=1m", "-o", "json"]

                def made() -> Any:
                    main(["report", *asked])
                    out = capsys.readouterr().out
                    return json.loads(out) if out else {}

                document = eventually(made, lambda found: bool(found.get("ignored_jobs") and held_namespaces(found)))
    assert document["ignored_jobs"] == [TENANTS]
    assert document["jobs"] == {AGENTS: 1}
    assert "evil" not in held_namespaces(document)


def held_namespaces(document: Any) -> set[str]:
    return {row["namespace"] for row in document["rows"] if row["row"] == "group"}
