"""Who was on a card when it raised an XID."""

from msgspec.structs import replace

from podgpu.agent.xid_log import MOST_KEPT, XidLog
from podgpu.model import (
    SEES_ALL,
    Ability,
    Card,
    Claim,
    ContainerRef,
    Device,
    Fault,
    Gpu,
    Process,
    Tenant,
    XidEvent,
    XidRecord,
)
from tests.tree import card

GPU = Gpu(uuid="GPU-1", index=0)
PAGE_FAULT = XidEvent(uuid="GPU-1", xid=31, at=100.0)


def tenant(pod: str, *, works: bool) -> Tenant:
    ref = ContainerRef(namespace="ml", pod=pod, container="main", pod_uid=pod)
    processes = (Process(pid=7, kinds=("compute",)),) if works else ()
    return Tenant(container=ref, claims=(Claim(gpu="GPU-1", container=ref),), processes=processes)


def on_card(*tenants: Tenant) -> Card:
    return card(Device(gpu=GPU, ability=SEES_ALL), tenants=tenants)


def pods(containers: tuple[ContainerRef, ...] | None) -> list[str]:
    return [ref.pod for ref in containers or ()]


def newest(log: XidLog, now: Card, *events: XidEvent) -> XidRecord:
    return log.noted(events, [now])[0].xids[0]


def test_a_process_that_the_xid_ended_was_on_the_card() -> None:
    log = XidLog()
    log.noted([], [on_card(tenant("train", works=True))])
    record = newest(log, on_card(tenant("train", works=False), tenant("new", works=True)), PAGE_FAULT)
    assert pods(record.present) == ["train", "new"]
    assert record.holders == ()
    assert (record.xid, record.at, record.meaning) == (31, 100.0, "GPU memory page fault")


def test_who_left_before_the_last_reading_was_not_on_the_card() -> None:
    log = XidLog()
    log.noted([], [on_card(tenant("early", works=True))])
    log.noted([], [on_card()])
    record = newest(log, on_card(tenant("idler", works=False)), PAGE_FAULT)
    assert record.present == ()
    assert pods(record.holders) == ["idler"]


def test_who_was_there_is_not_known_where_processes_are_not_seen() -> None:
    blind = card(Device(gpu=GPU, ability=Ability()), tenants=[tenant("train", works=False)])
    record = newest(XidLog(), blind, PAGE_FAULT)
    assert record.present is None
    assert pods(record.holders) == ["train"]


def test_of_a_card_that_fell_off_the_bus_it_is_known_who_was_on_it_before() -> None:
    log = XidLog()
    log.noted([], [on_card(tenant("train", works=True))])
    lost = replace(on_card(tenant("train", works=False)), fault=Fault(reason="lost"))
    assert pods(newest(log, lost, replace(PAGE_FAULT, xid=79)).present) == ["train"]


def test_the_newest_come_first_and_only_some_are_kept() -> None:
    log = XidLog()
    events = [replace(PAGE_FAULT, at=float(number)) for number in range(MOST_KEPT + 3)]
    (seen,) = log.noted([*events, replace(PAGE_FAULT, uuid="GPU-9")], [on_card()])
    assert [record.at for record in seen.xids] == [float(MOST_KEPT + 2 - number) for number in range(MOST_KEPT)]
    (again,) = log.noted([], [on_card()])
    assert again.xids == seen.xids
    log.forget(["GPU-1", "GPU-9"])
    assert log.noted([], [on_card()])[0].xids == ()
