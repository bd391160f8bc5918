"""`podgpu top` in a real terminal, against a real demo agent, with real keys."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.cli.main import main
from podgpu.model import of_one
from podgpu.sources.replay.recording import MAGIC, frame
from podgpu.views.cluster.json import encode
from tests.cli.terminal.pane import Pane, needs_tmux, pane
from tests.e2e.rig import demo
from tests.views.quirks import SNAPSHOT

pytestmark = needs_tmux

BUSIEST = "research/pretrain"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo(
        ["native"], tmp_path_factory.mktemp("demo") / "log", "--interval=1s", "--node-name=gpu-1"
    ) as here:
        yield here.urls["native"]


def rows(lines: list[str]) -> list[str]:
    return [line for line in lines[4:-1] if line]


def test_80_columns_have_the_pods_and_all_keys_work(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 24, "top", f"--url={url}") as terminal:
        lines = terminal.shows(BUSIEST)
        assert " DEMO  gpu-1 " in lines[1] and "8 GPUs" in lines[1] and "idle" in lines[1]
        assert lines[3].split() == ["NAMESPACE/POD", "GPU", "USE▼", "MEM", "GiB", "STATE"]
        assert all(name in terminal.text for name in ("lab/notebook-5", "speech/asr-2", "idle"))
        assert max(map(len, lines)) <= 80

        look_at_every_view(terminal)
        filter_sort_and_open(terminal)
        ask_for_help_and_quit(terminal)


def look_at_every_view(terminal: Pane) -> None:
    for key, heading in (("2", "NAMESPACE/WORKLOAD"), ("3", "NAMESPACE "), ("4", "NODE GPU"), ("5", "NODE▲")):
        terminal.press(key)
        terminal.shows(heading)
    terminal.press("tab")
    terminal.shows("NAMESPACE/POD")


def filter_sort_and_open(terminal: Pane) -> None:
    terminal.press("/", "notebook")
    lines = terminal.shows(lambda lines: len(rows(lines)) == 5 and "/notebook" in lines[-1])
    assert all("lab/notebook-" in row for row in rows(lines))
    terminal.press("enter", "<", "<", "down", "enter")
    lines = terminal.shows("process")
    assert [row.split()[0] for row in rows(lines) if row.startswith("lab/")][:2] == [
        "lab/notebook-1",
        "lab/notebook-2",
    ]
    assert "jupyter" in terminal.text and "filter notebook" in lines[2]
    terminal.press("escape", "i")
    lines = terminal.shows("idle only")
    assert all("idle" in row or "quiet" in row for row in rows(lines) if row[0] != " ")


def ask_for_help_and_quit(terminal: Pane) -> None:
    terminal.press("?")
    terminal.shows("sort by the next")
    terminal.press("?", "space")
    paused = terminal.shows("PAUSED")
    assert terminal.lines[0] == paused[0]
    terminal.press("q")
    lines = terminal.shows("code 0")
    assert lines[0].startswith("code 0")  # the screen is as it was before


def test_200_columns_have_more_and_a_smaller_window_less(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 200, 40, "top", f"--url={url}", environment="NO_COLOR=1") as terminal:
        lines = terminal.shows(lambda lines: len(lines) == 40 and "POWER" in lines[3])
        assert lines[3].split() == [
            "NAMESPACE/POD",
            "GPU",
            "HELD",
            "USE▼",
            "MEM",
            "GiB",
            "OF",
            "GiB",
            "POWER",
            "STATE",
        ]
        assert not re.search(r"\x1b\[(?:\d+;)*[34][0-7]m", terminal.run("capture-pane", "-p", "-e"))
        terminal.run("resize-window", "-x", "60", "-y", "12")
        lines = terminal.shows(lambda lines: len(lines) == 12 and lines[3].rstrip().endswith("STATE"))
        assert "USE▼" in lines[3] and "POWER" not in lines[3] and max(map(len, lines)) <= 60


def test_a_signal_leaves_the_terminal_as_it_was(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 24, "top", "gpus", f"--url={url}") as terminal:
        terminal.shows("NODE GPU")
        pid = terminal.run("list-panes", "-F", "#{pane_pid}").strip()
        child = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        terminal.run("run-shell", f"kill -TERM {child}")
        lines = terminal.shows("code 143")
        assert lines[0].startswith("code 143")


def test_a_failure_in_the_midst_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    whole = frame(1.0, encode(of_one(SNAPSHOT)))
    damaged = frame(3.0, b"nothing that a cluster would write")
    (tmp_path / "recording").write_bytes(MAGIC + whole + damaged)
    with pane(
        tmp_path, 80, 24, "top", "--source=replay", f"--replay.file={tmp_path / 'recording'}"
    ) as terminal:
        terminal.shows(" REPLAY ")
        lines = terminal.shows("code 2")
        assert lines[0].startswith("podgpu: This is not a document of a podgpu cluster")


def test_without_a_terminal_the_rows_are_printed_once(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "namespaces", "--url", url]) == 0
    out, _ = capfd.readouterr()
    assert out.splitlines()[0].split() == [
        "NAMESPACE",
        "PODS",
        "GPUS",
        "HELD",
        "USE",
        "MEM",
        "GiB",
        "POWER",
        "STATE",
    ]
    assert {line.split()[0] for line in out.splitlines()[1:]} >= {"research", "lab", "speech"}
