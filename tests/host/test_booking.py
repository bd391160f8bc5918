"""What those outside Kubernetes use is booked to them on a bare machine, and to nobody on a node of a cluster."""

from pathlib import Path

from podgpu.agent.attribution import Attribution
from podgpu.host.owner_names import BELIEVED_SECONDS, OwnerNames
from podgpu.host.procfs import Procfs
from podgpu.model import Card, Device, Gpu, Process, Reading
from tests.agent.stage import check_card, write_proc
from tests.host.machine import write_docker

GPU, ID = "GPU-1", "1" * 64
INTERVAL = 5.0


class Machine:
    """Cycles of one busy card that a container of Docker has for itself."""

    def __init__(self, folder: Path, *, books: bool) -> None:
        self.root, self.proc = folder / "root", folder / "proc"
        self.now = 0.0
        write_docker(self.root, ID, "/web")
        write_proc(self.proc, 7, f"0::/system.slice/docker-{ID}.scope\n")
        self._attribution = Attribution(
            interval=INTERVAL,
            processes=Procfs(self.proc),
            outsiders=OwnerNames(self.root, lambda: self.now),
            books_outsiders=books,
        )

    async def cycle(self, *, ended: bool = False) -> Card:
        self.now += INTERVAL
        readings = {
            "energy_joules_total": 100 * self.now,
            "utilization_ratio": 1.0,
            "memory_used_bytes": 100.0,
        }
        kinds, memory = ((), None) if ended else (("compute",), 60)
        process = Process(pid=7, kinds=kinds, memory_bytes=memory, sm_busy_us=5_000_000, sm_ratio=1.0)
        device = Device(
            gpu=Gpu(uuid=GPU, index=0),
            at=self.now,
            readings=tuple(Reading(name, value) for name, value in readings.items()),
            processes=(process,),
        )
        (card,) = (await self._attribution.attribute((device,), self.now)).cards
        assert card.balance
        check_card(card, card.balance)
        return card


def busy(card: Card) -> dict[tuple[str, str, str], int]:
    refs = sorted((tenant.container, tenant.booking.busy_us) for tenant in (*card.tenants, *card.ended))
    return {(ref.namespace, ref.pod, ref.container): time for ref, time in refs}


def host_time(card: Card) -> int:
    return sum(rest.busy_us for rest in card.rest if rest.reason == "container")


async def test_on_a_bare_machine_a_container_has_an_account(tmp_path: Path) -> None:
    machine = Machine(tmp_path, books=True)
    await machine.cycle()
    snapshot = await machine.cycle()
    assert busy(snapshot) == {("", "", "docker/web"): 5_000_000}
    assert host_time(snapshot) == 0


async def test_on_a_node_of_a_cluster_it_has_a_title_and_no_account(tmp_path: Path) -> None:
    machine = Machine(tmp_path, books=False)
    await machine.cycle()
    snapshot = await machine.cycle()
    assert busy(snapshot) == {}
    assert host_time(snapshot) == 5_000_000
    (process,) = snapshot.processes
    assert process.holder and (process.holder.title, process.holder.container) == ("docker/web", None)


async def test_a_process_that_has_just_ended_is_still_its_containers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, books=True)
    await machine.cycle()
    await machine.cycle()
    for file in (machine.proc / "7").iterdir():
        file.unlink()
    (machine.proc / "7").rmdir()
    assert busy(await machine.cycle(ended=True)) == {("", "", "docker/web"): 10_000_000}


async def test_a_container_that_is_renamed_goes_on_under_its_new_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, books=True)
    await machine.cycle()
    await machine.cycle()
    write_docker(machine.root, ID, "/shop")
    machine.now += BELIEVED_SECONDS
    titles = [name for _, _, name in busy(await machine.cycle())]
    assert titles == ["docker/shop", "docker/web"]
