"""The log of one card, open: everything that it takes to read it, and to let go of it."""

import time
from contextlib import suppress
from mmap import mmap

from msgspec import Struct

from podgpu.sources.switches import layout
from podgpu.sources.switches.driver import BIND_REASONS, STATUSES, Driver, Refusal
from podgpu.sources.switches.tape import Clock

PROMPT_SECONDS = 0.25  # until a switch is certainly in the log
SLOW_SECONDS = 2.5  # the same for a driver that reads the firmware's log once a second


class Drained(Struct, frozen=True):
    """Records that are new, and how many the driver dropped for want of room."""

    records: bytes
    dropped: int


class Logbook:
    """Raises Refusal if the log cannot be opened, with nothing left open."""

    def __init__(self, minor: int) -> None:
        self._driver = Driver()
        self._maps: list[mmap] = []
        self._next = 0
        self.began_ns = 0  # by the card's clock
        try:
            self.delay_ns = self._known_delay_ns()
            self._driver.open_card(minor)
            self._open(minor)
        except BaseException:
            self._let_go()
            raise

    def drain(self) -> Drained:
        """Return what was written since the last time, and make room for more."""
        header, records = self._maps
        _, end, _, dropped = layout.HEADER.unpack_from(header)
        if end >= layout.RECORDS:
            raise Refusal("bad_layout", "drain", f"the log goes on at {end} of {layout.RECORDS}")
        if end == self._next and not dropped:
            return Drained(b"", 0)
        begin_at, end_at = self._next * layout.RECORD_BYTES, end * layout.RECORD_BYTES
        new = records[begin_at:end_at] if begin_at <= end_at else records[begin_at:] + records[:end_at]
        self._next = end
        # The driver counts anew from here.
        self._driver.control(
            layout.BUFFER_HANDLE, layout.TELL, end.to_bytes(8, "little"), "tell what was read"
        )
        return Drained(new, dropped)

    def clock(self) -> Clock:
        before = time.time_ns()
        answer = self._driver.control(layout.SUBDEVICE_HANDLE, layout.GPU_TIME, bytes(8), "GPU time")
        now = int.from_bytes(answer, "little")
        after = time.time_ns()
        return Clock(now, now - (before + after) // 2, (after - before) // 2)

    def close(self) -> None:
        with suppress(Refusal):
            off = layout.enable(on=False)
            self._driver.control(layout.BUFFER_HANDLE, layout.ENABLE, off, "disable")
            self._driver.free(layout.BUFFER_HANDLE)
        self._let_go()

    def _let_go(self) -> None:
        for one in self._maps:
            one.close()
        self._driver.close()

    def _known_delay_ns(self) -> int:
        """Ask for the version before anything else: on another branch the same bytes may mean something else."""
        version = self._driver.version()
        branch = version.partition(".")[0]
        if not branch.isdecimal() or int(branch) not in layout.BRANCHES:
            raise Refusal("unknown_branch", "version", f"driver {version or 'without a version'}")
        seconds = PROMPT_SECONDS if int(branch) >= layout.FIRST_PROMPT_BRANCH else SLOW_SECONDS
        return round(seconds * 1e9)

    def _open(self, minor: int) -> None:
        driver = self._driver
        driver.start_client()
        driver.allocate(0, layout.DEVICE_HANDLE, layout.DEVICE, layout.device(driver.instance(minor)))
        driver.allocate(layout.DEVICE_HANDLE, layout.SUBDEVICE_HANDLE, layout.SUBDEVICE, bytes(4))
        sizes = {
            layout.HEADER_HANDLE: layout.HEADER_BYTES,
            layout.RECORDS_HANDLE: layout.RECORDS * layout.RECORD_BYTES,
        }
        for handle, size in sizes.items():
            driver.allocate(0, handle, layout.MEMORY, layout.memory(size))
        driver.allocate(0, layout.BUFFER_HANDLE, layout.EVENT_BUFFER, layout.event_buffer())
        self._maps = [driver.map(handle, size) for handle, size in sizes.items()]
        self.began_ns = self.clock().now_ns
        self._bind()
        driver.control(layout.BUFFER_HANDLE, layout.ENABLE, layout.enable(on=True), "enable")

    def _bind(self) -> None:
        """Once only: a bind that fails may disturb other readers of the log."""
        status, answer = self._driver.try_control(layout.SUBDEVICE_HANDLE, layout.BIND, layout.bind(), "bind")
        if status:
            reason = BIND_REASONS.get(int.from_bytes(answer[20:24], "little"))
            raise Refusal("refused", "bind", reason or STATUSES.get(status, f"status 0x{status:x}"))
