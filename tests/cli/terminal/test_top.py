"""`podgpu top` in a real terminal, against a real demo agent, with real keys."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from podgpu.cli.main import main
from podgpu.model import of_one
from podgpu.model.frames import MAGIC, frame
from podgpu.numbers import moment
from podgpu.views.cluster.json import encode
from podgpu.views.json import encode as encode_node
from tests.cli.terminal.pane import Pane, needs_tmux, pane
from tests.e2e.rig import demo
from tests.views.quirks import SNAPSHOT

pytestmark = needs_tmux

BUSIEST = "research/pretrain"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with demo(["native"], tmp_path_factory.mktemp("demo") / "log", "--interval=1s", "--node-name=gpu-1") as here:
        yield here.urls["native"]


def heading(lines: list[str]) -> str:
    return next((line for line in lines if "▼" in line or "▲" in line), "")


def is_whole(lines: list[str]) -> bool:
    """Whether all of the screen has been drawn, down to its last line."""
    return lines[-1:] != [] and lines[-1].startswith("? help") and BUSIEST in "\n".join(lines)


def names(lines: list[str]) -> list[str]:
    return [row.split()[0] for row in rows(lines)]


def rows(lines: list[str]) -> list[str]:
    below = lines.index(heading(lines)) + 1 if heading(lines) else len(lines)
    return [line for line in lines[below:-1] if line]


def test_80_columns_have_the_pods_and_all_keys_work(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 24, "top", f"--url={url}") as terminal:
        lines = terminal.shows(is_whole)
        assert " DEMO  gpu-1 " in lines[1] and "8 GPUs" in lines[1] and "idle" in lines[1]
        assert heading(lines).split() == ["NAMESPACE/POD", "GPU", "USE▼", "MEM", "GiB", "STATE"]
        meters = [line.split()[0] for line in lines[2:7]], [line[40:].split()[0] for line in lines[2:7]]
        assert meters == (["GPU", "0", "1", "2", "3"], ["GPU", "4", "5", "6", "7"])
        terminal.press("m")
        names = ("lab/notebook-5", "speech/asr-2", "idle", "? help")
        lines = terminal.shows(
            lambda lines: lines[2].startswith(" 1 Pods") and all(name in "\n".join(lines) for name in names)
        )
        assert max(map(len, lines)) <= 80

        look_at_every_view(terminal)
        filter_sort_and_open(terminal)
        ask_for_help_and_quit(terminal)


POD = re.compile(r"\S+/\S+ +\S+ +[#|:.]{8} +\d+%( \(~?\d+-\d+\))? +([\d.]+|-)( +(idle \w+|waiting))?")


@pytest.mark.parametrize(("environment", "flags"), [("LC_ALL=C", []), ("LC_ALL=C.UTF-8", ["--ascii"])])
def test_in_plain_characters_each_number_keeps_its_column(
    environment: str, flags: list[str], url: str, tmp_path: Path
) -> None:
    """The locale has no others, or the user wants none."""
    with pane(tmp_path, 80, 30, "top", f"--url={url}", *flags, environment=environment) as terminal:
        lines = terminal.shows(lambda lines: is_whole(lines) and any("USEv" in line for line in lines))
    below = next(number for number, line in enumerate(lines) if "USEv" in line)
    pods = [line for line in lines[below + 1 : -1] if line]
    assert len(pods) > 10 and "".join(lines).isascii()
    assert [pod for pod in pods if not POD.fullmatch(pod.rstrip())] == []


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
    assert "jupyter" in terminal.text and "filter notebook" in lines[2]  # below what is wrong and the sums
    terminal.press("escape")
    terminal.shows(lambda lines: len(rows(lines)) > 5 and "notebook" not in lines[2])
    terminal.press("i")
    terminal.shows(
        lambda lines: (
            "idle only" in "\n".join(lines)
            and all("idle" in row or "quiet" in row for row in rows(lines) if row[0] != " ")
        )
    )


def ask_for_help_and_quit(terminal: Pane) -> None:
    terminal.press("?")
    terminal.shows("kubectl logs, describe, exec")
    terminal.press("?", "space")
    paused = terminal.shows("PAUSED")
    assert terminal.lines[0] == paused[0]
    terminal.press("q")
    lines = terminal.shows("code 0")
    assert lines[0].startswith("code 0")  # the screen is as it was before


def test_200_columns_have_more_and_a_smaller_window_less(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 200, 40, "top", f"--url={url}", environment="NO_COLOR=1") as terminal:
        lines = terminal.shows(lambda lines: len(lines) == 40 and heading(lines).rstrip().endswith("STATE"))
        assert heading(lines).split() == [
            "NAMESPACE/POD",
            "GPU",
            "HELD",
            "USE▼",
            "TREND",
            "MEM",
            "GiB",
            "OF",
            "GiB",
            "POWER",
            "STATE",
        ]
        assert not re.search(r"\x1b\[(?:\d+;)*[34][0-8][m;]", terminal.run("capture-pane", "-p", "-e"))
        terminal.run("resize-window", "-x", "60", "-y", "12")
        lines = terminal.shows(lambda lines: len(lines) == 12 and heading(lines).rstrip().endswith("STATE"))
        assert "USE▼" in heading(lines) and "POWER" not in heading(lines) and max(map(len, lines)) <= 60


def test_a_signal_leaves_the_terminal_as_it_was(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 24, "top", "gpus", f"--url={url}") as terminal:
        terminal.shows(lambda lines: any(row.startswith("gpu-1 2 ") and "XID 31" in row for row in lines))
        terminal.shows("NODE GPU")
        pid = terminal.run("list-panes", "-F", "#{pane_pid}").strip()
        child = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
        terminal.run("run-shell", f"kill -TERM {child}")
        lines = terminal.shows("code 143")
        assert lines[0].startswith("code 143")


def test_a_failure_in_the_midst_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    whole = frame(1.0, (encode(of_one(SNAPSHOT)),))
    damaged = frame(3.0, (b"nothing that a cluster would write",))
    (tmp_path / "recording").write_bytes(MAGIC + whole + damaged)
    with pane(tmp_path, 80, 24, "top", "--source=replay", f"--replay.file={tmp_path / 'recording'}") as terminal:
        lines = terminal.shows("code 2")
        terminal.has_shown(" REPLAY ")
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


def test_a_dumb_terminal_gets_the_rows_once(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 40, "top", f"--url={url}", environment="TERM=dumb") as terminal:
        lines = terminal.shows("code 0")
        assert lines[0].split()[0] == "NAMESPACE/POD" and BUSIEST in terminal.text
        assert "\x1b[" not in terminal.run("capture-pane", "-p", "-e")


def test_the_mouse_sorts_chooses_opens_and_turns_to_a_gpu(url: str, tmp_path: Path) -> None:
    with pane(tmp_path, 80, 24, "top", f"--url={url}") as terminal:
        lines = terminal.shows(is_whole)
        head = lines.index(heading(lines))
        terminal.shows(lambda _: terminal.mouse_is_on)
        terminal.click(head, 3)
        lines = terminal.shows(
            lambda lines: "NAMESPACE/POD▲" in heading(lines) and names(lines) == sorted(names(lines))
        )
        chosen = lines[head + 3].split()[0]
        terminal.click(head + 3, 3)
        terminal.click(head + 3, 3)
        terminal.shows(lambda lines: chosen in lines[head + 3] and "GPU " in lines[head + 4])
        terminal.click(head - 1, lines[head - 1].index("5 Nodes"))
        terminal.shows("NODE▲")
        terminal.click(5, 3)
        lines = terminal.shows(lambda lines: "NODE GPU" in heading(lines) and "chat" in "\n".join(lines))
        terminal.press("y")
        terminal.shows("copied GPU-")
        terminal.shows(lambda _: terminal.run("list-buffers", "-F", "#{buffer_sample}").startswith("GPU-"))
        terminal.press("q")
        terminal.shows("code 0")
        assert not terminal.mouse_is_on


def test_an_agent_that_is_gone_dims_the_rows_and_says_since_when(tmp_path: Path) -> None:
    with ExitStack() as agent:
        url = agent.enter_context(served(encode_node(SNAPSHOT)))
        with pane(tmp_path, 80, 24, "top", f"--url={url}") as terminal:
            terminal.shows(lambda lines: "ml/llama-0" in "\n".join(lines) and lines[-1].startswith("? help"))
            assert colours_of_rows(terminal)
            agent.close()
            terminal.shows(lambda lines: lines[0].startswith(f"! {url}") and "cut off since" in lines[0])
            terminal.shows(lambda lines: "ml/llama-0" in "\n".join(lines) and not colours_of_rows(terminal))


def test_keys_go_a_minute_and_ten_minutes_back_and_forth(tmp_path: Path) -> None:
    def past(path: str) -> bytes | None:
        at = float(parse_qs(urlsplit(path).query)["at"][0])
        return encode_node(replace(SNAPSHOT, taken_at=at)) if at > SNAPSHOT.taken_at - 3600 else None

    def mode(minutes: float) -> str:
        return f"PAST {moment(SNAPSHOT.taken_at - 60 * minutes)}"

    with served(encode_node(SNAPSHOT), past) as url, pane(tmp_path, 120, 24, "top", f"--url={url}") as terminal:
        terminal.shows("ml/llama-0")
        for key, minutes in (("(", 10), ("(", 20), ("{", 21), ("}", 20), (")", 10)):  # 20 minutes are two presses
            terminal.press(key)
            terminal.shows(mode(minutes))
        terminal.press(")")
        terminal.shows(lambda lines: "PAST" not in "\n".join(lines) and lines[-1].startswith("? help"))
        terminal.press("(", "(", "(", "(", "(", "(")
        terminal.shows(lambda lines: "nothing is kept" in "\n".join(lines))
        terminal.shows(mode(50))
        terminal.press("?")
        terminal.shows("a minute, ten minutes back or forth")


@contextmanager
def served(document: bytes, past: Callable[[str], bytes | None] = lambda _: None) -> Iterator[str]:
    """An agent that has just this, and of the past what `past` returns for a path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = document if self.path == "/api/v1/snapshot" else None
            if self.path.startswith("/api/v1/history?"):
                found = past(self.path)
            self.send_response(404 if found is None else 200)
            body = b"nothing is kept of that time" if found is None else found
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def colours_of_rows(terminal: Pane) -> list[str]:
    below = terminal.run("capture-pane", "-p", "-e").partition("STATE")[2]
    return re.findall(r"\x1b\[(?:\d+;)*3(?:[1-6]|8;5;\d+)m", below)


KUBECTL = """#!/bin/sh
case "$*" in *" get pod "*) /bin/cat "$0.uid" ;; *) echo "called $*" ;; esac
"""


def test_kubectl_is_called_for_the_chosen_pod_and_for_no_namesake(url: str, tmp_path: Path) -> None:
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.parent.mkdir()
    path = f"PATH={kubectl.parent}"
    with pane(tmp_path, 120, 30, "top", f"--url={url}", "--context=lab", environment=path) as terminal:
        terminal.shows(is_whole)
        terminal.press("/", "chat", "enter")
        terminal.shows(lambda lines: len(rows(lines)) == 1)
        terminal.press("l")
        terminal.shows("kubectl is not installed here")
        terminal.press("enter")
        terminal.shows(lambda lines: len(rows(lines)) == 1)
        kubectl.write_text(KUBECTL)
        kubectl.chmod(0o755)
        Path(f"{kubectl}.uid").write_text("of another pod")
        terminal.press("e")
        terminal.shows("is another pod (its UID differs); choose the cluster with --context.")
        terminal.press("enter")
        terminal.shows(lambda lines: len(rows(lines)) == 1)
        Path(f"{kubectl}.uid").write_text(pod_uid(url, "chat"))
        for key, words in (("l", "logs chat"), ("d", "describe pod chat"), ("e", "exec chat")):
            terminal.press(key)
            terminal.shows(f"called --context=lab --namespace=assist {words}")
            terminal.shows("Enter goes back")
            terminal.press("enter")
            terminal.shows(lambda lines: len(rows(lines)) == 1)
        terminal.press("2", "l")
        terminal.shows("press 1, then choose one")


def pod_uid(url: str, name: str) -> str:
    with urlopen(f"{url}/api/v1/snapshot", timeout=60) as answer:
        pods = json.load(answer)["pods"]
    return next(str(pod["uid"]) for pod in pods if pod["name"].startswith(name))
