"""With a short interval the kubelet is asked seldom while nothing changes, and nobody can tell from the books."""

import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.agent.attribution import Attributed, Attribution
from podgpu.host.procfs import Procfs
from podgpu.model import Device, Gpu, Pod, PodContainer, Process, Reading
from podgpu.sources.simulator.kubernetes import DemoAllocations
from tests.agent.stage import check_card, write_proc
from tests.agent.test_attribution import Kubelet, Pods, cgroup
from tests.fakekubelet.rig import Clock

CARDS = ("GPU-1", "GPU-2")
NAMES = ("chat", "batch")
QUIET = 16  # seconds until the kubelet is asked seldom, and was just asked


class SteadyKubelet(Kubelet):
    """Counts the questions. `steady` is whether it says itself that only a pod changes its answer."""

    def __init__(self, *, steady: bool = True) -> None:
        super().__init__()
        self.steady = steady
        self.reads = 0
        self._last = DemoAllocations((), ())

    async def read(self) -> DemoAllocations:
        self.reads += 1
        found = await super().read()
        self._last = self._last if found == self._last else found
        return self._last

    def is_steady(self) -> bool:
        return self.steady


class RescannedPods(Pods):
    def look_again(self) -> None:
        """It lists only now and then."""


class Node:
    """Two cards, and pods that come and go. Each second is a cycle of everyone who attributes."""

    def __init__(self, proc: Path, *kubelets: SteadyKubelet, interval: float = 1.0, pods: type[Pods] = Pods) -> None:
        self.kubelets = kubelets
        self.clock = Clock()
        self.pods = pods("pods-api")
        self.running: dict[str, tuple[int, str]] = {}  # by the pod's name: the PID, and its card
        self._proc = proc
        self._serial = count(1)
        self._attributions = [
            Attribution(
                interval=interval,
                allocations=kubelet,
                pod_sources=[self.pods],
                processes=Procfs(proc),
                clock=self.clock,
            )
            for kubelet in kubelets
        ]

    def come(self, name: str, card: str) -> None:
        """A pod of that name starts, in place of the last one if there is one."""
        self.go(name)
        number = next(self._serial)
        container = PodContainer(name="main", container_id=f"{number:064x}", running=True)
        pod = Pod(namespace="ns", name=name, uid=uid(number), phase="Running", containers=(container,))
        self.pods.listed = (*self.pods.listed, pod)
        self.give(name, card)

    def go(self, name: str) -> None:
        self.stop(name)
        self.pods.listed = tuple(pod for pod in self.pods.listed if pod.name != name)
        for kubelet in self.kubelets:
            kubelet.given.pop(name, None)

    def give(self, name: str, card: str) -> None:
        for kubelet in self.kubelets:
            kubelet.given[name] = card

    def start(self, name: str) -> None:
        """Its process appears on the card that it holds."""
        pod = next((pod for pod in self.pods.listed if pod.name == name), None)
        if pod and name not in self.running:
            number = int(pod.containers[0].container_id, 16)
            write_proc(self._proc, number, f"0::/kubepods/pod{pod.uid}/{pod.containers[0].container_id}\n")
            self.running[name] = (number, self.kubelets[0].given[name])

    def stop(self, name: str) -> None:
        if name in self.running:
            pid, _ = self.running.pop(name)
            shutil.rmtree(self._proc / str(pid))

    async def second(self) -> list[Attributed]:
        self.clock.now += 1.0
        devices = [self._device(number, card) for number, card in enumerate(CARDS)]
        return [await each.attribute(devices, self.clock.now) for each in self._attributions]

    async def rest(self, seconds: int = QUIET) -> None:
        for _ in range(seconds):
            await self.second()

    def _device(self, index: int, card: str) -> Device:
        readings = (
            Reading("energy_joules_total", 100 * self.clock.now),
            Reading("power_limit_watts", 700.0),
            Reading("utilization_ratio", 1.0),
            Reading("memory_used_bytes", 100.0),
        )
        pids = [pid for pid, used in self.running.values() if used == card]
        processes = tuple(
            Process(pid=pid, kinds=("compute",), memory_bytes=10, sm_busy_us=200_000, sm_ratio=0.2)
            for pid in sorted(pids)
        )
        return Device(gpu=Gpu(uuid=card, index=index), at=self.clock.now, readings=readings, processes=processes)


def uid(number: int) -> str:
    return f"{number:08x}-2222-3333-4444-555555555555"


def tenants(found: Attributed) -> list[tuple[str, str, str]]:
    return [
        (card.gpu.uuid, tenant.container.pod, tenant.container.pod_uid)
        for card in found.cards
        for tenant in card.tenants
    ]


async def test_a_quiet_kubelet_is_asked_every_five_seconds(tmp_path: Path) -> None:
    kubelet = SteadyKubelet()
    node = Node(tmp_path, kubelet)
    node.come("chat", CARDS[0])
    node.start("chat")
    await node.rest()
    before = kubelet.reads
    await node.rest(50)
    assert kubelet.reads - before == 10


@pytest.mark.parametrize(
    ("interval", "steady", "pods"),
    [(5.0, True, Pods), (1.0, False, Pods), (1.0, True, RescannedPods)],
    ids=["default interval", "kubelet in trouble", "no watch"],
)
async def test_else_it_is_asked_in_every_cycle(tmp_path: Path, interval: float, steady: bool, pods: type[Pods]) -> None:
    kubelet = SteadyKubelet(steady=steady)
    node = Node(tmp_path, kubelet, interval=interval, pods=pods)
    await node.rest(40)
    assert kubelet.reads == 40


async def test_without_a_list_of_pods_that_works_it_is_asked_in_every_cycle(tmp_path: Path) -> None:
    kubelet = SteadyKubelet()
    node = Node(tmp_path, kubelet)
    node.pods.up = False
    await node.rest(40)
    assert kubelet.reads == 40


async def test_a_pod_replaced_under_its_name_between_two_questions_is_on_its_own_card(tmp_path: Path) -> None:
    node = Node(tmp_path, SteadyKubelet())
    node.come("chat", CARDS[0])
    await node.rest()
    node.come("chat", CARDS[1])
    (found,) = await node.second()
    assert tenants(found) == [(CARDS[1], "chat", uid(2))]


async def test_a_kubelet_that_is_behind_the_list_of_pods_is_asked_again_and_again(tmp_path: Path) -> None:
    node = Node(tmp_path, SteadyKubelet())
    await node.rest()
    node.come("chat", CARDS[0])
    del node.kubelets[0].given["chat"]
    await node.rest(7)
    node.give("chat", CARDS[0])
    (found,) = await node.second()
    assert tenants(found) == [(CARDS[0], "chat", uid(1))]


async def test_a_process_of_another_owner_with_the_same_pid_brings_the_question(tmp_path: Path) -> None:
    kubelet = SteadyKubelet()
    node = Node(tmp_path, kubelet)
    node.come("chat", CARDS[0])
    node.start("chat")
    await node.rest()
    before = kubelet.reads
    shutil.rmtree(tmp_path / "1")
    write_proc(tmp_path, 1, cgroup(uid(9), "b"), start="200")
    await node.second()
    assert kubelet.reads == before + 1


EVENTS: tuple[Callable[[Node, str, str], None], ...] = (
    Node.come,
    lambda node, name, _: node.go(name),
    lambda node, name, _: node.start(name),
    lambda node, name, _: node.stop(name),
)
STORIES = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3, 4, 12, 16]),
        st.sampled_from(EVENTS),
        st.sampled_from(NAMES),
        st.sampled_from(CARDS),
    ),
    max_size=8,
)


@given(STORIES)
async def test_the_books_are_those_of_a_kubelet_that_is_asked_every_second(
    story: Iterable[tuple[int, Callable[[Node, str, str], None], str, str]],
) -> None:
    with TemporaryDirectory() as folder:
        seldom, always = SteadyKubelet(), SteadyKubelet(steady=False)
        node = Node(Path(folder), seldom, always)
        for seconds, event, name, card in story:
            event(node, name, card)
            for _ in range(seconds):
                left, right = await node.second()
                assert (left.cards, left.pods) == (right.cards, right.pods)
        for each in left.cards if story else ():
            if each.balance:
                check_card(each, each.balance)
