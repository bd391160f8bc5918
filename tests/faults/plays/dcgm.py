"""D: what goes wrong with a dcgm-exporter that the numbers come from."""

import asyncio
from asyncio import StreamWriter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tests.fakenvml.fake_node import h200
from tests.faults.exporter import HEAD, Exporter, Send
from tests.faults.node import Node
from tests.faults.page import Page
from tests.faults.play import Fault, Phase, Play
from tests.faults.signs import both, card_down, counted, part_down, survived

KIB = 1 << 10
ELSEWHERE = "http://169.254.169.254/latest/meta-data"  # where clouds keep secrets


def reads_the_page(node: Node) -> Sequence[str]:
    limits = ("--dcgm.timeout=2s", f"--dcgm.max-bytes={64 * KIB}")
    return ("--source=dcgm", f"--dcgm.url={node.exporter.url}", *limits)


def reads_both(node: Node) -> Sequence[str]:
    """The driver gives the numbers, the page only what the driver lacks."""
    return ("--source=nvml+dcgm", f"--dcgm.url={node.exporter.url}", "--dcgm.timeout=2s")


def sends(make: Callable[[Node], Send]) -> Fault:
    """Let the exporter answer every request like this."""

    @contextmanager
    def fault(node: Node) -> Iterator[None]:
        node.exporter.send = make(node)
        yield
        node.exporter.send = node.exporter.sound

    return fault


def writes(change: Callable[[bytes], bytes]) -> Fault:
    """Let the exporter write its page in another way."""

    def make(node: Node) -> Send:
        async def send(writer: StreamWriter) -> None:
            await Exporter.answer(change(node.exporter.page()))(writer)

        return send

    return sends(make)


@contextmanager
def away(node: Node) -> Iterator[None]:
    node.do(node.exporter.stop())
    yield
    node.do(node.exporter.start())


async def trickle(writer: StreamWriter) -> None:
    writer.write(HEAD.format(status="200 OK", more="").encode())
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.1)


async def flood(writer: StreamWriter) -> None:
    """Send a page without an end, and without a single line's end."""
    writer.write(HEAD.format(status="200 OK", more="").encode())
    while True:
        writer.write(b"#" * (16 * KIB))
        await writer.drain()


def cut(node: Node) -> Send:
    async def send(writer: StreamWriter) -> None:
        page = node.exporter.page()
        await Exporter.answer(page[: len(page) // 2], length=len(page))(writer)

    return send


def quotes_forgotten(page: bytes) -> bytes:
    """Add a line as dcgm-exporter writes it for a pod with a quote in a label: it escapes nothing."""
    bad = f'DCGM_FI_DEV_GPU_TEMP{{gpu="0",UUID="{h200(0).uuid}",label="a "quote" in it"}} 40\n'
    return bad.encode() + b"DCGM_FI_DEV_GPU_TEMP{ , =\x01\x00\n" + page


def written_twice(page: bytes) -> bytes:
    """Add every line once more, some with another value."""
    return page + page.replace(b'"} 4', b'"} 3')


def without_card_1(page: bytes) -> bytes:
    kept = [line for line in page.splitlines(keepends=True) if h200(1).uuid.encode() not in line]
    return b"".join(kept)


def renamed(page: bytes) -> bytes:
    """Spell labels as newer versions do, and leave out what they no longer have."""
    lines = page.replace(b"Hostname=", b"hostname=").splitlines(keepends=True)
    return b"".join(line for line in lines if b"GPU_TEMP" not in line and not line.startswith(b"# HELP"))


def has_both_cards(now: Page) -> bool:
    return len(now.values("podgpu_gpu_power_watts")) == 2


PLAYS = (
    Play(
        id="D1",
        what="dcgm-exporter sends a byte now and then",
        fault=sends(lambda _: trickle),
        shows=part_down("dcgm", "page_late"),
        flags=reads_the_page,
    ),
    Play(
        id="D1.away",
        what="dcgm-exporter is away",
        fault=away,
        shows=part_down("dcgm", "page_unreachable"),
        flags=reads_the_page,
    ),
    Play(
        id="D1.beside",
        what="dcgm-exporter hangs beside a driver that works",
        fault=sends(lambda _: trickle),
        shows=both(part_down("dcgm", "page_late"), lambda now, _: has_both_cards(now)),
        flags=reads_both,
    ),
    Play(
        id="D2",
        what="dcgm-exporter's page has no end",
        fault=sends(lambda _: flood),
        shows=part_down("dcgm", "page_too_large"),
        flags=reads_the_page,
    ),
    Play(
        id="D3",
        what="lines of the page are malformed",
        fault=writes(quotes_forgotten),
        shows=both(counted("dcgm", "malformed_sample"), survived(has_both_cards)),
        flags=reads_the_page,
    ),
    Play(
        id="D4",
        what="series are on the page twice, and contradict each other",
        fault=writes(written_twice),
        shows=both(counted("dcgm", "contradiction"), survived(has_both_cards)),
        flags=reads_the_page,
    ),
    Play(
        id="D5",
        what="a card is missing on the page",
        fault=writes(without_card_1),
        shows=card_down(1, "gone", "dcgm"),
        flags=reads_the_page,
        left_out={Phase.START: "a card that was never seen is not missed"},
    ),
    Play(
        id="D6",
        what="labels are spelled in another way, and metrics are gone",
        fault=writes(renamed),
        shows=survived(lambda now: has_both_cards(now) and not now.values("podgpu_gpu_temperature_celsius")),
        flags=reads_the_page,
    ),
    Play(
        id="D7",
        what="the page breaks off in the middle",
        fault=sends(cut),
        shows=part_down("dcgm", "page_garbage"),
        flags=reads_the_page,
    ),
    Play(
        id="D7.redirect",
        what="the page sends whoever asks to another address",
        fault=sends(lambda _: Exporter.answer(b"", "302 Found", more=f"Location: {ELSEWHERE}\r\n")),
        shows=part_down("dcgm", "page_refused"),
        flags=reads_the_page,
    ),
    Play(
        id="D7.html",
        what="there is a web page where the metrics should be",
        fault=sends(lambda _: Exporter.answer(b"<html><body>It works!</body></html>")),
        shows=part_down("dcgm", "no_gpu"),
        flags=reads_the_page,
    ),
    Play(
        id="D7.gzip",
        what="the page is compressed, though nobody asked for that",
        fault=sends(lambda _: Exporter.answer(b"\x1f\x8b" * 100, more="Content-Encoding: gzip\r\n")),
        shows=part_down("dcgm", "page_garbage"),
        flags=reads_the_page,
    ),
)
