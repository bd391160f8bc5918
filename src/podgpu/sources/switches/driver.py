"""The calls to the driver, and the log of a card. A call that fails raises SwitchLogRefused with the reason."""

import fcntl
import mmap
import os
import struct
import time
from array import array

from podgpu.sources.switches import layout

CONTROL_NODE = "/dev/nvidiactl"
TRIES = 5
TRY_AGAIN_SECONDS = 0.002
_READ_WRITE = 3

STATUSES = {
    0x0F: "the GPU is lost",
    0x1A: "the driver has no room for it",
    0x1B: "no permission",
    0x22: "the driver does not know the class",
    0x3A: "the parameters have another size in this driver",
    0x51: "no memory",
    0x56: "not supported: confidential computing, vGPU without profiling, or MIG",
    layout.UNWRITTEN: "the call did not reach the driver: a sandbox such as gVisor may have caught it",
}
BIND_REASONS = {
    1: "the GPU is too old",
    2: "not enabled on this GPU",
    3: "not enabled",
    4: "needs an administrator",
    5: "needs the profiling option of the vGPU",
}


class SwitchLogRefused(Exception):
    """The log cannot be read. `reason` is one of those in operations.md."""

    def __init__(self, reason: str, call: str, detail: str = "") -> None:
        super().__init__(f"{call}: {detail or reason}")
        self.reason = reason
        self.call = call
        self.detail = detail


def opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise SwitchLogRefused("no_device", "open", f"there is no {path}") from None
    except OSError as error:
        raise SwitchLogRefused("no_device", "open", f"{path}: {error.strerror}") from None


class Driver:
    """A client of the driver. Closing it frees everything that was allocated through it."""

    def __init__(self) -> None:
        self._fds = [opened(CONTROL_NODE)]
        self._client = 0

    def close(self) -> None:
        for fd in reversed(self._fds):
            os.close(fd)
        self._fds = []

    def version(self) -> str:
        answer = self._call(layout.VERSION, layout.VERSION_CALL.pack(layout.VERSION_QUERY, 0, b""), "version")
        text: bytes = layout.VERSION_CALL.unpack(answer)[2]
        return text.partition(b"\0")[0].decode("ascii", "replace")

    def open_card(self, minor: int) -> None:
        """Open the card's device node, which the driver requires, and lock it against other readers of podgpu."""
        fd = opened(f"/dev/nvidia{minor}")
        self._fds.append(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SwitchLogRefused("in_use", "flock", f"another reader has /dev/nvidia{minor}") from None

    def start_client(self) -> None:
        self._client = self.allocate(0, 0, layout.CLIENT)

    def instance(self, minor: int) -> int:
        """Return the driver's number for the card with this minor."""
        answer = self._call(layout.CARDS, bytes(layout.MOST_CARDS * layout.CARD.size), "cards")
        for card in layout.CARD.iter_unpack(answer):
            if card[0] and card[-2] == minor:
                found = self.control(self._client, layout.ID_INFO, struct.pack("<I28x", card[7]), "card id")
                return int.from_bytes(found[8:12], "little")
        raise SwitchLogRefused("no_device", "cards", f"the driver does not list the card of /dev/nvidia{minor}")

    def allocate(self, parent: int, handle: int, kind: int, parameters: bytes = b"") -> int:
        """Return the handle of a new object. A parent of 0 is the client."""
        padded = array("B", parameters.ljust(layout.PARAMETER_BYTES, b"\0"))
        address = padded.buffer_info()[0] if parameters else 0
        answer = self._call(
            layout.ALLOC,
            layout.ALLOC_CALL.pack(
                self._client,
                parent or self._client,
                handle,
                kind,
                address,
                len(parameters),
                layout.UNWRITTEN,
            ),
            f"allocate 0x{kind:x}",
        )
        fields = layout.ALLOC_CALL.unpack(answer)
        _check(fields[-1], f"allocate 0x{kind:x}")
        return int(fields[2])

    def control(self, handle: int, command: int, parameters: bytes, name: str) -> bytes:
        """Return the parameters as the driver left them."""
        for _ in range(TRIES):
            status, answer = self.control_once(handle, command, parameters, name)
            if status not in layout.RETRY:
                break
            time.sleep(TRY_AGAIN_SECONDS)
        _check(status, name)
        return answer

    def control_once(self, handle: int, command: int, parameters: bytes, name: str) -> tuple[int, bytes]:
        """Return the status too."""
        held = array("B", parameters)
        request = layout.CONTROL_CALL.pack(
            self._client, handle, command, 0, held.buffer_info()[0], len(parameters), layout.UNWRITTEN
        )
        status = layout.CONTROL_CALL.unpack(self._call(layout.CONTROL, request, name))[-1]
        return status, held.tobytes()

    def map(self, memory: int, size: int) -> mmap.mmap:
        """Map memory read-only, through a control node of its own."""
        fd = opened(CONTROL_NODE)
        self._fds.append(fd)
        request = layout.MAP_CALL.pack(
            self._client, self._client, memory, 0, 0, size, 0, layout.UNWRITTEN, layout.READ_ONLY, fd, 0
        )
        _check(layout.MAP_CALL.unpack(self._call(layout.MAP, request, "map"))[7], "map")
        try:
            return mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        except OSError as error:
            raise SwitchLogRefused("refused", "mmap", f"{error.strerror}") from None

    def free(self, handle: int) -> None:
        request = layout.FREE_CALL.pack(self._client, self._client, handle, layout.UNWRITTEN)
        self._call(layout.FREE, request, "free")

    def _call(self, number: int, request: bytes, name: str) -> bytearray:
        code = _READ_WRITE << 30 | len(request) << 16 | ord("F") << 8 | number
        answer = bytearray(request)
        try:
            fcntl.ioctl(self._fds[0], code, answer)
        except OSError as error:
            raise SwitchLogRefused("refused", name, f"{error.strerror}") from None
        return answer


def _check(status: int, name: str) -> None:
    if status:
        raise SwitchLogRefused("refused", name, STATUSES.get(status, f"status 0x{status:x}"))


PROMPT_SECONDS = 0.25  # until a switch is certainly in the log
SLOW_SECONDS = 2.5  # the same for a driver that reads the firmware's log once a second


class CardLog:
    """The open log of a card. Raises SwitchLogRefused, with nothing left open, if it cannot be opened."""

    def __init__(self, minor: int) -> None:
        self._driver = Driver()
        self._maps: list[mmap.mmap] = []
        self._next = 0
        self.began_ns = 0  # by the card's clock
        try:
            self.delay_ns = self._known_delay_ns()
            self._driver.open_card(minor)
            self._open(minor)
        except BaseException:
            self._release()
            raise

    def drain(self) -> tuple[bytes, int]:
        """Return the records since the last time, and make room for more.

        The second is how many the driver dropped because the buffer was full.
        """
        header, records = self._maps
        _, end, _, dropped = layout.HEADER.unpack_from(header)
        if end >= layout.RECORDS:
            raise SwitchLogRefused("bad_layout", "drain", f"the log goes on at {end} of {layout.RECORDS}")
        if end == self._next and not dropped:
            return b"", 0
        begin_at, end_at = self._next * layout.RECORD_BYTES, end * layout.RECORD_BYTES
        new = records[begin_at:end_at] if begin_at <= end_at else records[begin_at:] + records[:end_at]
        self._next = end
        # The driver counts dropped records from here.
        self._driver.control(layout.BUFFER_HANDLE, layout.TELL, end.to_bytes(8, "little"), "tell what was read")
        return new, dropped

    def clock(self) -> tuple[int, int, int]:
        """Return the fields of a `CardClock`."""
        before = time.time_ns()
        answer = self._driver.control(layout.SUBDEVICE_HANDLE, layout.GPU_TIME, bytes(8), "GPU time")
        now = int.from_bytes(answer, "little")
        after = time.time_ns()
        return now, now - (before + after) // 2, (after - before) // 2

    def close(self) -> None:
        try:
            off = layout.enable(on=False)
            self._driver.control(layout.BUFFER_HANDLE, layout.ENABLE, off, "disable")
            self._driver.free(layout.BUFFER_HANDLE)
        except SwitchLogRefused:
            pass
        self._release()

    def _release(self) -> None:
        for mapped in self._maps:
            mapped.close()
        self._driver.close()

    def _known_delay_ns(self) -> int:
        """Check the version before anything else: on another branch the same bytes may mean something else."""
        version = self._driver.version()
        branch = version.partition(".")[0]
        if not branch.isdecimal() or int(branch) not in layout.BRANCHES:
            raise SwitchLogRefused("unknown_branch", "version", f"driver {version or 'without a version'}")
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
        self.began_ns = self.clock()[0]
        self._bind()
        driver.control(layout.BUFFER_HANDLE, layout.ENABLE, layout.enable(on=True), "enable")

    def _bind(self) -> None:
        """Bind once, without retries: a bind that fails may disturb other readers of the log."""
        status, answer = self._driver.control_once(layout.SUBDEVICE_HANDLE, layout.BIND, layout.bind(), "bind")
        if status:
            reason = BIND_REASONS.get(int.from_bytes(answer[20:24], "little"))
            raise SwitchLogRefused("refused", "bind", reason or STATUSES.get(status, f"status 0x{status:x}"))
