"""The four phases of an agent's life in which a fault is played. Each returns the seconds until all was well again."""

import socket
import time
from contextlib import ExitStack
from typing import Self

from podgpu.agent.loop import STALE_INTERVALS
from tests.faults.contract import LATE, Judge
from tests.faults.node import INTERVAL, Node
from tests.faults.page import parsed
from tests.faults.play import Phase, Play
from tests.patience import PATIENCE

# A fault lasts at least this long: whatever is frozen by it is too old by then.
LASTS = STALE_INTERVALS * INTERVAL + LATE + INTERVAL


def at_start(play: Play, node: Node) -> float | None:
    """The fault is there before the agent is."""
    flags = play.flags(node)
    with ExitStack() as fault:
        fault.enter_context(play.fault(node))
        with node.run_agent(flags) as agent:
            judge = Judge(agent, node)
            judge.wait_for(play)
            _outlast(judge, time.monotonic())
            judge.look_closely(play.clients)
            fault.close()
            return judge.recovers(play)


def while_running(play: Play, node: Node) -> float | None:
    """The fault comes and goes."""
    with node.run_agent(play.flags(node)) as agent:
        judge = Judge(agent, node)
        before, began = judge.wait_well(play), time.monotonic()
        with play.fault(node):
            judge.wait_for(play, before)
            _outlast(judge, began)
            judge.look_closely(play.clients)
        return judge.recovers(play)


def with_a_scrape_in_flight(play: Play, node: Node) -> float | None:
    """The fault comes while a page is read, and goes while another is."""
    with node.run_agent(play.flags(node)) as agent:
        judge = Judge(agent, node)
        before, began = judge.wait_well(play), time.monotonic()
        with ExitStack() as fault:
            with Scrape(node) as scrape:
                fault.enter_context(play.fault(node))
                scrape.finish()
            judge.wait_for(play, before)
            _outlast(judge, began)
            with Scrape(node) as scrape:
                fault.close()
                scrape.finish()
        return judge.recovers(play)


def at_stop(play: Play, node: Node) -> float | None:
    """The agent is asked to end in the midst of the fault and of a scrape."""
    with node.run_agent(play.flags(node)) as agent:
        judge = Judge(agent, node)
        before, began = judge.wait_well(play), time.monotonic()
        with play.fault(node):
            judge.wait_for(play, before)
            _outlast(judge, began)
            with Scrape(node) as scrape:
                judge.stops()
                scrape.finish()
    return None


PHASES = {
    Phase.START: at_start,
    Phase.RUNNING: while_running,
    Phase.SCRAPE: with_a_scrape_in_flight,
    Phase.STOP: at_stop,
}


def _outlast(judge: Judge, began: float) -> None:
    while time.monotonic() < began + LASTS:
        judge.look()
        time.sleep(0.1)


class Scrape:
    """A page that is under way: the first byte has come, the rest is taken by `finish`."""

    def __init__(self, node: Node) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that the page does not fit
        self._socket.settimeout(PATIENCE)
        self._socket.connect(("127.0.0.1", node.port))
        if node.context:
            self._socket = node.context.wrap_socket(self._socket, server_hostname="127.0.0.1")
        fields = {"Host": "localhost", "Connection": "close", **node.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self._socket.sendall(f"GET /metrics HTTP/1.1\r\n{lines}\r\n".encode())
        self._answer = self._socket.recv(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def finish(self) -> None:
        while more := self._socket.recv(65536):
            self._answer += more
        head, _, body = self._answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), "U1"
        assert f"content-length: {len(body)}".encode() in head.lower(), "U1: the page was cut"
        parsed(body.decode())
