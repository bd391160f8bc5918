"""The examples of docs/serving.md, as they stand there: curl, promtool and a real Prometheus."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.prometheus import PROGRAM, started
from tests.e2e.rig import eventually, logged, running

DOCUMENT = Path(__file__).parents[2] / "docs/serving.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
SESSIONS = [text for kind, text in BLOCKS if kind == "console"]
FILES = [text for kind, text in BLOCKS if kind == "yaml"]
WEB_CONFIGS = [text for text in FILES if text.startswith("tls_server_config")]
[SCRAPE] = [text for text in FILES if text.startswith("scrape_configs")]
[START] = [text for kind, text in BLOCKS if kind == "sh" and text.startswith("podgpu demo ")]

pytestmark = pytest.mark.skipif(
    not (shutil.which("openssl") and shutil.which("curl")), reason="openssl or curl is not installed"
)


def steps(session: str) -> list[tuple[str, str]]:
    """Each command with what it is said to print."""
    return [(text.partition("\n")[0], text.partition("\n")[2]) for text in session.split("$ ")[1:]]


def play(session: str, folder: Path, port: int) -> None:
    for command, output in steps(session):
        here = command.replace("19400", str(port))
        done = subprocess.run(["bash", "-c", here], cwd=folder, capture_output=True, text=True, check=False)
        assert done.stdout == output, (command, done.stderr)


@dataclass(frozen=True)
class Node:
    """An agent that was set up by the page, and its folder."""

    folder: Path
    log: Path
    port: int

    def page(self) -> str:
        login = ["--cacert", "tls.crt", "-u", "alice:secret"]
        words = ["curl", "-s", *login, f"https://localhost:{self.port}/metrics"]
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("serving")
    play(SESSIONS[0], folder, 19400)
    (folder / "web-config.yml").write_text(WEB_CONFIGS[0])
    start = START.replace("web-config.yml", str(folder / "web-config.yml")).split()
    log = folder / "log"
    with running([sys.executable, "-m", *start, "--web.listen-address=127.0.0.1:0"], log):
        here = Node(folder, log, int(logged(log, r"addresses=127\.0\.0\.1:(\d+)")))
        assert eventually(lambda: "podgpu_gpu_info" in here.page())
        yield here


def test_the_session_runs_as_it_stands_there(node: Node) -> None:
    play(SESSIONS[1], node.folder, node.port)


def test_the_demo_names_its_addresses_with_https(node: Node) -> None:
    assert logged(node.log, r"native +(\S+)") == f"https://127.0.0.1:{node.port}/metrics"


@pytest.mark.skipif(PROGRAM is None, reason="prometheus is not installed")
def test_a_real_prometheus_scrapes_with_the_password(node: Node, tmp_path: Path) -> None:
    assert PROGRAM
    document: dict[str, Any] = yaml.safe_load(SCRAPE.replace("19400", str(node.port)))
    document["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s"}
    (node.folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    (node.folder / "password").write_text("secret")
    with started(node.folder / "prometheus.yml", tmp_path) as scraper:
        assert eventually(lambda: scraper.query("count(podgpu_gpu_info)")) == [({}, 8.0)]
        assert eventually(lambda: scraper.targets()["podgpu"]["health"] == "up")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize("text", WEB_CONFIGS)
def test_prometheus_itself_takes_our_web_configurations(node: Node, text: str) -> None:
    (node.folder / "clients.crt").write_bytes((node.folder / "tls.crt").read_bytes())
    (node.folder / "checked.yml").write_text(text)
    words = ["promtool", "check", "web-config", "checked.yml"]
    done = subprocess.run(words, cwd=node.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_bad_change_is_logged_in_the_words_of_the_page(node: Node) -> None:
    path = node.folder / "web-config.yml"
    path.write_text(f"{WEB_CONFIGS[0]}rate_limit: {{}}\n")
    line = logged(node.log, r"(level=error .*)")
    path.write_text(WEB_CONFIGS[0])
    [shown] = [text for kind, text in BLOCKS if kind == "text" and text.startswith("level=")]
    assert line.startswith(shown.partition("…")[0])
    assert "unknown key 'rate_limit'" in line
    assert "podgpu_gpu_info" in node.page()
