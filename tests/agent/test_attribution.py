"""What Kubernetes, the kernel and the cards say, brought together over some cycles."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from podgpu.agent.attribution import Attributed, Attribution
from podgpu.host.procfs import Procfs
from podgpu.model import (
    Allocation,
    Claim,
    Device,
    Fault,
    Gpu,
    PartStatus,
    Pod,
    PodContainer,
    Process,
    Reading,
    Tenant,
    Workload,
)
from podgpu.sources.simulator.kubernetes import DemoAllocations
from podgpu.supervise import Supervisor
from tests.agent.stage import check_card, write_proc
from tests.patience import PATIENCE, until

GPU, UID, OTHER = "GPU-1", "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
INTERVAL = 5.0
LONGEST_PIECE = 0.4  # of the work, without a turn for others: as much on a slow machine as on a fast one


def cgroup(uid: str, container: str) -> str:
    return f"0::/kubepods/pod{uid}/{container * 64}\n"


def pod(uid: str = UID, name: str = "chat", container: str = "a", phase: str = "Running") -> Pod:
    containers = (PodContainer(name="main", container_id=container * 64, running=True),)
    return Pod(namespace="ns", name=name, uid=uid, phase=phase, containers=containers)


PLACE = ("ns", "main")


class Kubelet:
    name = "podresources"

    def __init__(self, **given: str) -> None:
        self.given = given
        self.places: dict[str, tuple[str, str]] = {}  # namespaces and containers of pods, where they are unusual
        self.errors: Counter[str] = Counter()

    async def read(self) -> DemoAllocations:
        rows = [
            Allocation(
                namespace=self.places.get(name, PLACE)[0],
                pod=name,
                container=self.places.get(name, PLACE)[1],
                resource="nvidia.com/gpu",
                device_id=device_id,
            )
            for name, device_id in self.given.items()
        ]
        return DemoAllocations(tuple(rows), ())

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=True, age_seconds=0.0)


class Pods:
    def __init__(self, name: str, *pods: Pod, up: bool = True, breaks: bool = False) -> None:
        self.name = name
        self.listed = pods
        self.up = up
        self.runs = 0
        self.errors: Counter[str] = Counter()
        self._breaks = breaks

    async def run(self) -> None:
        self.runs += 1
        if self._breaks:
            raise ZeroDivisionError

    def pods(self) -> tuple[Pod, ...]:
        return self.listed

    def status(self) -> PartStatus:
        return PartStatus(name=self.name, up=self.up, age_seconds=0.0)


class Stage:
    """Cycles of one card. The /proc is a folder, read by the real reader."""

    def __init__(self, folder: Path, kubelet: Kubelet, *sources: Pods) -> None:
        self.proc = folder / "proc"
        self.at = 1000.0
        self.attribution = Attribution(
            interval=INTERVAL, allocations=kubelet, pod_sources=sources, processes=Procfs(self.proc)
        )

    def device(self, *processes: Process, seconds: float = INTERVAL) -> Device:
        self.at += seconds
        readings = {
            "energy_joules_total": self.at,
            "power_limit_watts": 700.0,
            "utilization_ratio": 1.0,
            "memory_used_bytes": 100.0,
        }
        return Device(
            gpu=Gpu(uuid=GPU, index=0),
            at=self.at,
            readings=tuple(Reading(name, value) for name, value in readings.items()),
            processes=processes,
        )

    async def cycle(self, *processes: Process, seconds: float = INTERVAL) -> Attributed:
        return await self.see(self.device(*processes, seconds=seconds))

    async def see(self, *devices: Device) -> Attributed:
        found = await self.attribution.attribute(devices, self.at)
        for card in found.cards:
            if card.balance:
                check_card(card, card.balance)
        return found


def runs(pid: int, busy: int = 1_000_000) -> Process:
    return Process(pid=pid, kinds=("compute",), memory_bytes=10, sm_busy_us=busy, sm_ratio=0.2)


def worked(pid: int, busy: int = 1_000_000) -> Process:
    """One that is no longer listed."""
    return replace(runs(pid, busy), kinds=(), memory_bytes=None)


def busy(found: Attributed) -> dict[tuple[str, str], int]:
    (card,) = found.cards
    everybody = (*card.tenants, *card.ended)
    return {(tenant.container.pod, tenant.container.pod_uid): tenant.booking.busy_us for tenant in everybody}


def only(tenants: Iterable[Tenant], uid: str) -> Tenant:
    (found,) = (tenant for tenant in tenants if tenant.container.pod_uid == uid)
    return found


def claims(found: Attributed) -> tuple[Claim, ...]:
    return tuple(claim for card in found.cards for tenant in card.tenants for claim in tenant.claims)


def remove(proc: Path, pid: int) -> None:
    for file in (proc / str(pid)).iterdir():
        file.unlink()
    (proc / str(pid)).rmdir()


async def test_a_pods_last_seconds_are_its_own(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(), Pods("pods-api", pod(), pod(OTHER, "batch", "b")))
    write_proc(stage.proc, 7, cgroup(UID, "a"))
    write_proc(stage.proc, 8, cgroup(OTHER, "b"))
    await stage.cycle(runs(7), runs(8))
    before = busy(await stage.cycle(runs(7), runs(8)))
    remove(stage.proc, 7)
    after = busy(await stage.cycle(worked(7), runs(8)))
    assert after["chat", UID] == before["chat", UID] + 1_000_000


async def test_they_are_not_those_of_the_process_that_has_its_pid_now(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(), Pods("pods-api", pod(), pod(OTHER, "batch", "b")))
    write_proc(stage.proc, 7, cgroup(UID, "a"))
    await stage.cycle(runs(7))
    await stage.cycle(runs(7))
    remove(stage.proc, 7)
    write_proc(stage.proc, 7, cgroup(OTHER, "b"), start="200")
    found = busy(await stage.cycle(worked(7)))
    assert ("batch", OTHER) not in found
    assert found["chat", UID] == 2 * INTERVAL * 1e6


async def test_a_process_that_is_listed_is_whose_it_is_now(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(), Pods("pods-api", pod(), pod(OTHER, "batch", "b")))
    write_proc(stage.proc, 7, cgroup(UID, "a"))
    await stage.cycle(runs(7))
    remove(stage.proc, 7)
    write_proc(stage.proc, 7, cgroup(OTHER, "b"), start="200")
    (card,) = (await stage.cycle(runs(7))).cards
    assert only(card.tenants, OTHER).booking.processes == 1
    assert not card.ended, "nothing was booked to the other pod before it left"


async def test_a_process_that_outlives_its_pods_record_keeps_its_name(tmp_path: Path) -> None:
    """A pod deleted by force is gone from the list at once; its processes take their time."""
    source = Pods("pods-api", pod())
    stage = Stage(tmp_path, Kubelet(), source)
    write_proc(stage.proc, 7, cgroup(UID, "a"))
    await stage.cycle(runs(7))
    source.listed = ()
    (card,) = (await stage.cycle(runs(7))).cards
    assert only(card.tenants, UID).booking.busy_us == INTERVAL * 1e6
    assert [rest.reason for rest in card.rest if rest.busy_us] == []


async def test_a_moved_process_does_not_keep_its_name(tmp_path: Path) -> None:
    source = Pods("pods-api", pod())
    stage = Stage(tmp_path, Kubelet(), source)
    write_proc(stage.proc, 7, cgroup(UID, "a"))
    await stage.cycle(runs(7))
    remove(stage.proc, 7)
    write_proc(stage.proc, 7, cgroup(OTHER, "b"))
    (card,) = (await stage.cycle(runs(7))).cards
    (process,) = card.processes
    assert process.holder and process.holder.container is None


async def test_a_pod_made_again_within_the_grace_period_is_another(tmp_path: Path) -> None:
    source = Pods("pods-api", pod())
    stage = Stage(tmp_path, Kubelet(chat=GPU), source)
    await stage.cycle()
    await stage.cycle()
    source.listed = (pod(OTHER),)
    (card,) = (await stage.cycle()).cards
    old, new = only(card.ended, UID).booking, only(card.tenants, OTHER).booking
    assert (old.allocated_us, new.allocated_us) == (INTERVAL * 1e6, INTERVAL * 1e6)


async def test_when_names_come_late_the_account_by_name_goes_on_beside(tmp_path: Path) -> None:
    """Claims without UIDs first, then with: the series of the name is their sum, and nothing is booked twice."""
    source = Pods("pods-api")
    stage = Stage(tmp_path, Kubelet(chat=GPU), source)
    await stage.cycle()
    await stage.cycle()
    source.listed = (pod(),)
    (card,) = (await stage.cycle()).cards
    assert sum(tenant.booking.allocated_us for tenant in (*card.tenants, *card.ended)) == 2 * INTERVAL * 1e6
    assert [tenant.container.pod_uid for tenant in card.tenants] == [UID]


async def test_a_list_of_bare_names_does_not_drive_out_what_a_better_one_told(tmp_path: Path) -> None:
    """The kubelet restarts: its log folders are all that can be read, and they tell no phase, label or owner."""
    known = replace(pod(), labels={"app": "chat"})
    done = pod(OTHER, "done", "b", "Succeeded")
    best = Pods("pods-api", known, done)
    bare = Pods("log-dirs", *(Pod(namespace="ns", name=full.name, uid=full.uid) for full in (known, done)))
    stage = Stage(tmp_path, Kubelet(chat=GPU, done=GPU), best, bare)
    before = await stage.cycle()
    best.up = False
    after = await stage.cycle()
    assert claims(after) == claims(before) != (), "a pod that ended is believed again"
    assert after.pods == before.pods


async def test_the_log_folders_still_tell_of_a_new_pod(tmp_path: Path) -> None:
    best = Pods("pods-api", pod(), up=False)
    stage = Stage(tmp_path, Kubelet(new=GPU), best, Pods("log-dirs", Pod(namespace="ns", name="new", uid=OTHER)))
    snapshot = await stage.cycle()
    assert [claim.container.pod_uid for claim in claims(snapshot)] == [OTHER]


async def test_a_second_source_that_works_beats_the_first_that_does_not(tmp_path: Path) -> None:
    stale = Pods("pods-api", pod(), up=False)
    stage = Stage(tmp_path, Kubelet(chat=GPU), stale, Pods("apiserver", pod(phase="Succeeded")))
    assert claims(await stage.cycle()) == ()


async def test_a_silent_card_keeps_its_claims_and_its_ids_are_no_riddle(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(chat=GPU), Pods("pods-api", pod()))
    before = await stage.cycle()
    silent = Device(gpu=Gpu(uuid=GPU, index=0), fault=Fault(reason="gpu_lost"))
    during = await stage.see(silent)
    assert claims(before)
    assert (claims(during), during.unclaimed, during.pods) == (claims(before), (), before.pods)
    (card,) = during.cards
    tenant = only(card.tenants, UID)
    assert (tenant.idle, tenant.booking.processes, tenant.booking.allocated_ratio) == (None, None, None)
    assert (await stage.see()).unclaimed == ()


async def test_an_agent_that_was_restarted_knows_since_when_a_pod_holds_its_card(tmp_path: Path) -> None:
    """What it saw before is gone with it; when the pod started is in the list of pods."""
    for agent in ("before", "after"):
        started = replace(pod(), started_at=1234.0)
        stage = Stage(tmp_path / agent, Kubelet(chat=GPU), Pods("pods-api", started))
        tenant = only((await stage.cycle()).cards[0].tenants, UID)
        assert (tenant.held_since, tenant.booking.last_active_at) == (1234.0, None)


async def test_after_a_gap_no_power_is_made_up(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Kubelet(chat=GPU), Pods("pods-api", pod()))
    await stage.cycle()
    first = only((await stage.cycle()).cards[0].tenants, UID).booking
    before = only((await stage.cycle()).cards[0].tenants, UID).booking
    after = only((await stage.cycle(seconds=3600)).cards[0].tenants, UID).booking
    assert first.power_watts is None, "nobody knows when the counter's first step began"
    assert before.power_watts is not None
    assert after.power_watts is None
    assert after.allocated_us == before.allocated_us


async def test_a_source_that_breaks_takes_nothing_down(tmp_path: Path) -> None:
    broken, sound = Pods("pods-api", breaks=True), Pods("apiserver")
    stage = Stage(tmp_path, Kubelet(), broken, sound)
    supervisor = Supervisor()
    running = asyncio.create_task(stage.attribution.run(supervisor))
    await until(lambda: sound.runs and supervisor.errors["pods-api", "crashed"])
    shown = supervisor.shown((broken.status(), sound.status()))
    running.cancel()
    (ended,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(ended, asyncio.CancelledError)
    assert sound.runs == 1
    assert [part.up for part in shown] == [False, True]
    assert supervisor.errors["pods-api", "crashed"] == 1


class Broken:
    name = "workloads"

    async def resolve(self, pods: Iterable[Pod]) -> dict[str, Workload]:
        raise ZeroDivisionError


async def test_workloads_that_cannot_be_told_are_a_part_that_is_down(tmp_path: Path) -> None:
    attribution = Attribution(interval=INTERVAL, workloads=Broken())
    found = await attribution.attribute((), 0.0)
    assert [(part.name, part.up) for part in found.parts] == [("workloads", False)]


class Hanging(Kubelet):
    hangs = False

    async def read(self) -> DemoAllocations:
        if self.hangs:
            await asyncio.Event().wait()
        return await super().read()


async def test_a_kubelet_that_hangs_holds_up_nothing(tmp_path: Path) -> None:
    """With a short interval its deadline is longer than the numbers may be old."""
    kubelet = Hanging(chat=GPU)
    attribution = Attribution(interval=0.1, allocations=kubelet, pod_sources=[Pods("pods-api", pod())])
    devices = (Device(gpu=Gpu(uuid=GPU, index=0)),)
    before = await attribution.attribute(devices, 0.0)
    kubelet.hangs = True
    for _ in range(3):
        after = await asyncio.wait_for(attribution.attribute(devices, 0.0), PATIENCE)
        assert claims(after) == claims(before) != ()
    await attribution.close()


async def test_very_many_ids_are_nobody_elses_trouble(tmp_path: Path) -> None:
    """A list of that length takes a second or two to understand. Pages are answered meanwhile."""
    kubelet = Kubelet()
    many = [
        Allocation(namespace="ns", pod="chat", container="main", resource="nvidia.com/gpu", device_id=f"{GPU}::{n}")
        for n in range(60_000)
    ]

    async def read() -> DemoAllocations:
        return DemoAllocations(tuple(many), tuple(("nvidia.com/gpu", allocation.device_id) for allocation in many))

    kubelet.read = read  # type: ignore[method-assign]
    stage = Stage(tmp_path, kubelet, Pods("pods", pod()))
    gc.freeze()  # what other tests left is not looked through in a piece of this one
    longest, begun = 0.0, time.process_time()
    cycle = asyncio.create_task(stage.cycle())
    while not cycle.done():
        began = time.thread_time()  # of this thread alone: how busy the machine is makes no difference
        await asyncio.sleep(0.005)
        longest = max(longest, time.thread_time() - began)
    work = time.process_time() - begun
    gc.unfreeze()
    ((tenant,),) = ([*card.tenants] for card in cycle.result().cards)
    ((claim,),) = ([*tenant.claims],)
    assert claim.device_id == f"{GPU}::0 and 59999 more"
    assert round(claim.share, 6) == 1.0
    assert longest < LONGEST_PIECE * work, "others had no turn meanwhile"
    await stage.attribution.close()


async def test_of_labels_and_annotations_only_those_that_were_named_are_shown(tmp_path: Path) -> None:
    listed = replace(pod(), labels={"team": "a", "other": "secret"}, annotations={"nvidia.com/note": "secret"})
    attribution = Attribution(
        interval=INTERVAL,
        allocations=Kubelet(chat=GPU),
        pod_sources=[Pods("pods", listed)],
        processes=Procfs(tmp_path),
        pod_labels=("team",),
    )
    found = await attribution.attribute([Stage(tmp_path, Kubelet()).device()], 1000.0)
    assert [shown.labels for shown in found.pods] == [{"team": "a"}]
    assert "secret" not in repr(found)
