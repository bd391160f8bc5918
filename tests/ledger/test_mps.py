"""MPS on one card: the driver counts the clients' time as the server's."""

import pytest
from msgspec.structs import replace

from podgpu.ledger import book as books
from podgpu.ledger.band import Period
from podgpu.ledger.cycle import CycleBooks, Interval, TenantKey
from podgpu.ledger.residency import Evidence
from podgpu.ledger.usage import servers
from podgpu.model import (
    BusyWindow,
    Claim,
    ContainerRef,
    Device,
    Gpu,
    Holder,
    Process,
    Reading,
    Slice,
    SwitchLog,
)
from tests.tree import WATCHED

GPU = "GPU-1"
A, B, DAEMON = (ContainerRef("ns", name, "main", f"uid-{name}") for name in ("a", "b", "mps-daemon"))
CYCLE = Interval(elapsed_us=1000, energy_mj=1000, busy_us=990)
CLIENT, SERVER = ("compute", "mps"), ("compute",)


def card(*processes: Process) -> Device:
    used = Reading("memory_used_bytes", 1000.0)
    return Device(gpu=Gpu(uuid=GPU, index=0), ability=WATCHED, readings=(used,), processes=processes)


def process(pid: int, kinds: tuple[str, ...], memory: int, sm_us: int) -> Process:
    return Process(pid=pid, kinds=kinds, memory_bytes=memory, sm_busy_us=sm_us, sm_ratio=sm_us / 1000)


PIPES = "/run/nvidia/mps"


def holder(
    pid: int,
    container: ContainerRef,
    command: str = "python3",
    mps: str | None = f"{PIPES}/nvidia.com/gpu/pipe",
) -> Holder:
    return Holder(pid=pid, kind="pod", container=container, command=command, user=0, mps=mps)


def server(pid: int, container: ContainerRef, mps: str | None = PIPES) -> Holder:
    return holder(pid, container, "nvidia-cuda-mps", mps)


def of_user(pid: int, user: int, command: str = "python3", mps: str | None = None) -> Holder:
    """A process outside of all containers, on a machine where such have accounts."""
    return Holder(pid=pid, kind="host", container=OUTSIDE[pid], command=command, user=user, mps=mps)


OUTSIDE = {1: A, 2: B, 9: DAEMON}
HOLDERS = {1: holder(1, A), 2: holder(2, B), 9: server(9, DAEMON)}
AS_ON_A_REAL_CARD = card(process(1, CLIENT, 300, 0), process(2, CLIENT, 200, 0), process(9, SERVER, 66, 990))


def book(device: Device, interval: Interval, claims: list[Claim], holders: dict[int, Holder]) -> CycleBooks:
    """As the agent does: whoever holds anything on the node is no server, but only this card's claims are booked."""
    pods = {(held.container.namespace, held.container.pod) for held in claims}
    here = [held for held in claims if held.gpu == GPU]
    return books.book(device, interval, here, holders, servers(device, holders, lambda: pods))


def claim(container: ContainerRef, share: float) -> Claim:
    return Claim(gpu=GPU, container=container, share=share)


def of(sheet: CycleBooks, container: ContainerRef) -> tuple[int | None, int, int, str]:
    entry = sheet.bookings[TenantKey(GPU, "", container)]
    return entry.memory_bytes, entry.busy_us, entry.energy_mj, entry.method


def test_the_servers_time_is_divided_among_the_clients_by_their_claims() -> None:
    sheet = book(AS_ON_A_REAL_CARD, CYCLE, [claim(A, 0.5), claim(B, 0.25)], HOLDERS)
    assert of(sheet, A) == (300, 660, 667, "weighted")
    assert of(sheet, B) == (200, 330, 333, "weighted")
    assert TenantKey(GPU, "", DAEMON) not in sheet.bookings
    assert sheet.bookings["overhead"].memory_bytes == 500
    (server,) = sheet.bookings["overhead"].processes
    assert server.pid == 9 and server.holder and server.holder.serves


def test_what_each_client_used_is_estimated_or_unknown_and_is_not_zero() -> None:
    sheet = book(AS_ON_A_REAL_CARD, CYCLE, [claim(A, 0.5), claim(B, 0.5)], HOLDERS)
    assert [sheet.bookings[TenantKey(GPU, "", container)].sm_ratio for container in (A, B)] == [0.495, 0.495]
    sheet = book(AS_ON_A_REAL_CARD, CYCLE, [claim(A, 0.5)], HOLDERS)
    assert [sheet.bookings[TenantKey(GPU, "", container)].sm_ratio for container in (A, B)] == [0.495, None]


def test_a_client_without_a_claim_leaves_the_others_no_more_than_theirs() -> None:
    sheet = book(AS_ON_A_REAL_CARD, CYCLE, [claim(A, 0.5)], HOLDERS)
    assert of(sheet, A)[1] == 495
    assert of(sheet, B)[1] == 0
    assert sheet.bookings["unknown"].busy_us == 495


def test_the_only_client_had_it_all() -> None:
    alone = card(process(1, CLIENT, 300, 0), process(9, SERVER, 66, 990))
    sheet = book(alone, CYCLE, [claim(A, 0.25)], HOLDERS)
    assert of(sheet, A) == (300, 990, 1000, "exclusive")


def test_a_process_beside_mps_keeps_what_was_measured_of_it() -> None:
    mixed = card(process(1, CLIENT, 300, 0), process(2, SERVER, 200, 400), process(9, SERVER, 66, 590))
    sheet = book(mixed, CYCLE, [claim(A, 0.5), claim(B, 0.5)], HOLDERS)
    assert of(sheet, A)[1:] == (590, 596, "weighted")
    assert of(sheet, B)[1:] == (400, 404, "measured")


FORGED = card(process(1, CLIENT, 300, 0), process(2, SERVER, 200, 900), process(9, SERVER, 66, 90))


def test_a_tenant_that_calls_itself_the_server_pays_for_itself() -> None:
    """Otherwise its time would be on the clients' bill."""
    sheet = book(FORGED, CYCLE, [claim(A, 0.5), claim(B, 0.5)], HOLDERS | {2: server(2, B)})
    assert of(sheet, A)[1] == 90
    assert of(sheet, B)[1] == 900


@pytest.mark.parametrize(
    "mps",
    [None, "", "/run/nvidia/mps-of-mine", "/data", "root"],
    ids=["none", "empty", "alike", "shared", "root in a pod"],
)
def test_so_does_a_pod_without_a_claim_that_does_not_meet_the_clients(mps: str | None) -> None:
    sheet = book(FORGED, CYCLE, [claim(A, 0.5)], HOLDERS | {2: server(2, B, mps)})
    assert of(sheet, A)[1] == 90
    assert of(sheet, B)[1] == 900


def test_so_does_a_container_of_root_outside_of_kubernetes() -> None:
    docker = Holder(pid=2, kind="container", container=B, command="nvidia-cuda-mps", user=0)
    sheet = book(FORGED, CYCLE, [claim(A, 0.5)], HOLDERS | {2: docker})
    assert of(sheet, A)[1] == 90
    assert of(sheet, B)[1] == 900


def test_without_clients_a_process_of_that_name_is_like_any_other() -> None:
    sheet = book(card(process(9, SERVER, 66, 990)), CYCLE, [], HOLDERS)
    assert of(sheet, DAEMON)[1] == 990


def test_on_a_machine_without_claims_a_user_cannot_put_his_time_on_others_bill() -> None:
    own = {
        1: of_user(1, 1000),
        2: of_user(2, 1001, "nvidia-cuda-mps"),
        9: of_user(9, 0, "nvidia-cuda-mps", "root"),
    }
    sheet = book(FORGED, CYCLE, [], own)
    assert of(sheet, A)[1] == 90
    assert of(sheet, B)[1] == 900


def test_a_user_may_run_a_server_for_himself() -> None:
    own = {1: of_user(1, 1001), 2: of_user(2, 1001), 9: of_user(9, 1001, "nvidia-cuda-mps")}
    sheet = book(AS_ON_A_REAL_CARD, CYCLE, [], own)
    assert of(sheet, A)[1] == of(sheet, B)[1] == 495


@pytest.mark.parametrize(
    "forger",
    [
        server(2, ContainerRef("ns", "b", "other", "uid-b")),
        server(2, ContainerRef("ns", "b", "", "uid-b")),
        Holder(pid=2, kind="pod", command="nvidia-cuda-mps", user=0, mps=PIPES),
    ],
    ids=["another container of the pod", "a container without a name", "a pod that is not known yet"],
)
def test_a_pod_that_holds_anything_or_is_not_known_is_no_server(forger: Holder) -> None:
    elsewhere = Claim(gpu="GPU-2", container=B, share=1.0)
    sheet = book(FORGED, CYCLE, [claim(A, 0.5), elsewhere], HOLDERS | {2: forger})
    assert of(sheet, A)[1] == 90


def test_of_two_servers_of_one_user_one_is_none_and_their_time_is_nobodys_known() -> None:
    stranger = ContainerRef("ns", "stranger", "main", "uid-s")
    sheet = book(FORGED, CYCLE, [claim(A, 0.5)], HOLDERS | {2: server(2, stranger)})
    assert of(sheet, A)[1] == 0
    assert sheet.bookings[TenantKey(GPU, "", A)].sm_ratio is None  # it may have had some of that
    assert sheet.bookings["unknown"].busy_us == 990


def logged(*slices: Slice, busy: int = 990_000) -> Evidence:
    """What the log of context switches says of a cycle of a millisecond."""
    log = SwitchLog(begin_ns=0, end_ns=1_000_000, slices=slices, switches=len(slices))
    return Evidence(windows=(BusyWindow(0, 1_000_000, busy),), slices=slices, log=log)


MIXED = card(process(1, CLIENT, 300, 0), process(2, SERVER, 200, 0), process(9, SERVER, 66, 990))


@pytest.mark.parametrize("named", [1, 9], ids=["client", "server"])
def test_beside_others_the_log_says_what_the_clients_had_together(named: int) -> None:
    evidence = logged(Slice(named, 0, 600_000), Slice(2, 600_000, 1_000_000))
    sheet = books.book(MIXED, CYCLE, [claim(A, 0.5), claim(B, 0.5)], HOLDERS, {9}, evidence)
    assert of(sheet, A)[1:] == (590, 596, "weighted")  # samples named nobody but the server
    assert of(sheet, B)[1:] == (400, 404, "resident")
    assert sum(entry.busy_us for entry in sheet.bookings.values()) == 990
    mine = sheet.bookings[TenantKey(GPU, "", A)]
    assert (mine.least_us, mine.most_us) == (0, 600)
    assert mine.resident_us is None  # what is on the card is the work of all clients
    assert sheet.bookings["overhead"].resident_us == 600


def test_where_it_is_uncertain_who_serves_the_log_counts_for_nobody() -> None:
    stranger = ContainerRef("ns", "stranger", "main", "uid-s")
    holders = HOLDERS | {2: server(2, stranger)}
    evidence = logged(Slice(1, 0, 600_000), Slice(2, 600_000, 1_000_000))
    sheet = books.book(FORGED, CYCLE, [claim(A, 0.5)], holders, {2, 9}, evidence)
    assert all(entry.resident_us is None for entry in sheet.bookings.values())


def test_among_clients_the_log_changes_nothing() -> None:
    with_log = books.book(
        AS_ON_A_REAL_CARD,
        CYCLE,
        [claim(A, 0.5), claim(B, 0.25)],
        HOLDERS,
        {9},
        logged(Slice(1, 0, 900_000), Slice(2, 900_000, 1_000_000)),
    )
    assert of(with_log, A) == (300, 660, 667, "weighted")
    assert of(with_log, B) == (200, 330, 333, "weighted")


def test_the_only_client_still_had_it_all() -> None:
    alone = card(process(1, CLIENT, 300, 0), process(9, SERVER, 66, 990))
    sheet = books.book(alone, CYCLE, [claim(A, 0.25)], HOLDERS, {9}, logged(Slice(1, 0, 1_000_000)))
    assert of(sheet, A) == (300, 990, 1000, "exclusive")


def test_what_is_proven_of_clients_is_in_their_band() -> None:
    evidence = logged(Slice(9, 0, 600_000), Slice(2, 600_000, 1_000_000), busy=500_000)
    interval = replace(CYCLE, busy_us=500)
    sheet = books.book(MIXED, interval, [claim(A, 0.5), claim(B, 0.5)], HOLDERS, {9}, evidence)
    period = Period()
    period.add(sheet)
    bands = {party: (band.least_us, band.most_us) for party, band in period.bands().items()}
    assert bands[TenantKey(GPU, "", A)] == (0, 500)
    assert bands[TenantKey(GPU, "", B)] == (0, 400)
