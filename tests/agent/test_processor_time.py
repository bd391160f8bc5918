from podgpu.agent.sampling_checks import ProcessorTime
from podgpu.ledger.cycle import CycleBooking, CycleBooks, Party
from podgpu.model import Holder, Process


def process(pid: int, start: int = 1) -> Process:
    return Process(pid=pid, kinds=("compute",), holder=Holder(pid=pid, kind="pod", start_time=start))


def sheet(*parties: tuple[str, list[Process], str]) -> CycleBooks:
    entries: dict[Party, CycleBooking] = {
        name: CycleBooking(processes=own, running=len(own), method=method) for name, own, method in parties
    }
    return CycleBooks(gpu="GPU-1", bookings=entries, memory_bytes=None, busy_us=0, energy_mj=0)


def test_what_each_party_used_since_the_cycle_before() -> None:
    times = {1: 100, 2: 200, 3: 1000}
    processor_time = ProcessorTime(times.get)
    first = sheet(("a", [process(1), process(2)], "measured"), ("b", [process(3)], "measured"))
    processor_time.note([first])
    assert [entry.cpu_us for entry in first.bookings.values()] == [None, None]  # nobody knows since when
    times.update({1: 150, 2: 200, 3: 1007})
    second = sheet(("a", [process(1), process(2)], "measured"), ("b", [process(3)], ""))
    processor_time.note([second])
    assert [entry.cpu_us for entry in second.bookings.values()] == [50, 7]


def test_a_process_with_the_number_of_another_begins_anew() -> None:
    times = {1: 100, 2: 100}
    processor_time = ProcessorTime(times.get)
    processor_time.note([sheet(("a", [process(1)], "measured"), ("b", [process(2)], "measured"))])
    times.update({1: 500, 2: 101})
    later = sheet(("a", [process(1, start=9)], "measured"), ("b", [process(2)], "measured"))
    processor_time.note([later])
    assert [entry.cpu_us for entry in later.bookings.values()] == [None, 1]


def test_nobody_is_asked_about_where_nothing_is_shared_by_looks() -> None:
    asked: list[int] = []

    def read(pid: int) -> int:
        asked.append(pid)
        return 0

    processor_time = ProcessorTime(read)
    processor_time.note([sheet(("a", [process(1)], "exclusive"))])
    processor_time.note([sheet(("a", [process(1)], "resident"), ("b", [process(2)], "resident"))])
    assert asked == []
