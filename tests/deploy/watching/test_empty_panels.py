"""What dashboards show of nodes that are in trouble, empty, or a replay: numbers, or words for none."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from math import isfinite
from pathlib import Path
from threading import Thread

import pytest

from tests.deploy.watching.rulebook import ROOT
from tests.deploy.watching.test_answers import hurried
from tests.deploy.watching.test_dashboards import PANELS, chosen
from tests.e2e.prometheus import PROGRAM, Job, Prometheus, prometheus
from tests.e2e.rig import demo, logged, running

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")

PLACE = r'addresses="?([^"\s=]+)'


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A node in trouble and one where all is well and nobody holds a GPU, as pages that do not change; and a replay."""
    folder = tmp_path_factory.mktemp("fixed")
    page = (ROOT / "tests/golden/native.txt").read_text()
    (folder / "trouble").write_text(page)
    (folder / "empty").write_text("".join(_without_pods(page)))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Page, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        jobs = [Job(name, f"http://127.0.0.1:{server.server_port}/{name}") for name in ("trouble", "empty")]
        with (
            _replay(folder) as url,
            prometheus([*jobs, Job("replay", url)], folder, hurried(folder)) as here,
        ):
            yield here.when("count(count_over_time(podgpu_up[1m]) > 8) == 3", "count(podgpu_up) == 3")
        server.shutdown()


@contextmanager
def _replay(folder: Path) -> Iterator[str]:
    """Play a few seconds of the demo again and again, so that counters restart."""
    podgpu, file = [sys.executable, "-m", "podgpu"], str(folder / "recording")
    with demo(["native"], folder / "demo.log", "--interval=500ms", "--node-name=replayed") as node:
        record = ["record", file, "--url", node.urls["native"], "--every=500ms", "--for=4s"]
        subprocess.run([*podgpu, *record], check=True, capture_output=True)
    agent = ["agent", "--source=replay", f"--replay.file={file}", "--replay.loop=on", "--interval=500ms"]
    log = folder / "replay.log"
    with running([*podgpu, *agent, "--kube.api=off", "--web.listen-address=127.0.0.1:0"], log):
        yield f"http://{logged(log, PLACE)}/metrics"


class _Page(SimpleHTTPRequestHandler):
    def guess_type(self, path: object) -> str:
        return "text/plain"

    def log_message(self, *_: object) -> None:
        pass


def _without_pods(page: str) -> Iterator[str]:
    for line in page.splitlines(keepends=True):
        name, sample = line.partition("{")[0], line.rpartition(" ")[0]
        if re.match(r"podgpu_(container|pod|process|unattributed|ended)_|\w+_problem|\w+_xid_", name):
            continue
        is_reset = name.endswith(("_up", "_total", "_ratio"))
        healthy = f"{sample} {int(name.endswith('_up'))}\n" if is_reset else line
        yield healthy.replace('node="gpu-node-1"', 'node="empty"')


@pytest.mark.parametrize("node", ["gpu-node-1", "empty", "replayed"])
def test_every_panel_has_an_answer_or_words_for_none(nodes: Prometheus, node: str) -> None:
    """On a node in trouble, on a healthy one without pods, and in a replay. Nothing divided by nothing is neither."""
    assert nodes.query(f'podgpu_up{{node="{node}"}}')
    for board, panel in PANELS:
        answers = [nodes.query(chosen(query.limited(panel.most_series), node=node)) for query in panel.queries]
        values = [value for answer in answers for _, value in answer]
        assert values or panel.no_value, (board.uid, panel.title)
        assert all(map(isfinite, values)), (board.uid, panel.title)


def test_what_failed_is_on_top(nodes: Prometheus) -> None:
    """The first query of a timeline has those that failed, the second all others."""
    (panel,) = [panel for _, panel in PANELS if panel.kind == "state-timeline" and panel.title == "Sources"]
    failed, well = (nodes.query(chosen(query.promql)) for query in panel.queries)
    assert {labels["source"] for labels, _ in failed} == {"podresources", "pods-api"}
    assert {value for _, value in failed} == {0}
    assert {value for _, value in well} == {1}
