import os
import shutil
import tempfile
from pathlib import Path

import pytest

from podgpu.host.procfs import BELIEVED_SECONDS, EVIDENCE_CHARACTERS, Procfs
from podgpu.model import Holder, Owner

POD = "121157b5-c67d-4c3e-9052-cb27bbb711fb"
OTHER_POD = "4c9f1974-5c46-44c2-b42f-3bbf0e98eef9"
ID = "1cd3449e930b8a28c7595240fa32ba20c84f36d059e5fbe63104ad40057992d1"
OTHER_ID = "bacb920470900725e0aa7d914fee5eb0854315448b024b6b8420ad8429c607ba"
IN_POD = f"0::/kubepods/pod{POD}/{ID}\n"
IN_OTHER_POD = f"0::/kubepods/pod{OTHER_POD}/{OTHER_ID}\n"

INITIAL = {"pid": 4026531836, "cgroup": 4026531835}


class Tree:
    """A made-up /proc. Files are put in place whole, as those of a new process are."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def process(
        self,
        pid: int | str,
        cgroup: str | bytes | None,
        *,
        start: int = 1000,
        state: str = "S",
        flags: int = 0x400000,
        comm: str = "python3",
    ) -> None:
        rest = " ".join(["1", "1", "1", "0", "-1", str(flags), *["0"] * 12, str(start), *["0"] * 30])
        self.file(f"{pid}/stat", f"{pid} ({comm}) {state} {rest}\n")
        if cgroup is not None:
            self.file(f"{pid}/cgroup", cgroup)

    def reader(self, cgroup: str, *, pid: int = 4026532000, cgroups: int = 4026531835, nspid: str = "77") -> None:
        """Describe the process that reads: its namespaces and its PID in each of them."""
        self.file("self/cgroup", cgroup)
        self.file("self/status", f"Name:\tpodgpu\nNSpid:\t{nspid}\n")
        for kind, inode in (("pid", pid), ("cgroup", cgroups)):
            link = self.root / "self" / "ns" / kind
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"{kind}:[{inode}]")

    def file(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content if isinstance(content, bytes) else content.encode())
        fresh.rename(path)

    def exit(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))


class Clock:
    now = 100.0
    step = 0.0  # by which it goes on with each look at it

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def procfs(tree: Tree, clock: Clock) -> Procfs:
    return Procfs(tree.root, clock)


def test_a_process_in_a_pod_is_the_pods_with_its_evidence(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD, start=4711)
    holder = procfs.holders([7])[7]
    assert (holder.pid, holder.kind, holder.start_time, holder.reason) == (7, "pod", 4711, "")
    assert holder.owner == Owner(pod_uid=POD, container_id=ID, qos="guaranteed")
    assert holder.cgroup == IN_POD.strip()
    assert holder.container is None


def test_owners_that_are_no_pods_have_a_kind_too(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, f"0::/system.slice/docker-{ID}.scope\n")
    tree.process(8, "0::/system.slice/ssh.service\n")
    holders = procfs.holders([7, 8, 9])
    assert [holders[pid].kind for pid in (7, 8, 9)] == ["container", "host", "unknown"]
    assert holders[9].reason == "exited"


@pytest.mark.parametrize("comm", ["a b", "a) R 1 (b", ")", "((", "x\ny", "1 (2) 3 4 5 6 7 8 9"])
def test_the_start_time_is_found_behind_any_name(tree: Tree, procfs: Procfs, comm: str) -> None:
    tree.process(7, IN_POD, start=31, comm=comm)
    assert procfs.holders([7])[7].start_time == 31


@pytest.mark.parametrize("stat", [b"", b"7 (x) S", b"7 (x S 1 2", b"7 (x) S " + b"z " * 50, b"\xff" * 2000])
def test_a_strange_stat_makes_a_process_unreadable(tree: Tree, procfs: Procfs, stat: bytes) -> None:
    tree.process(7, IN_POD)
    tree.file("7/stat", stat)
    holder = procfs.holders([7])[7]
    assert (holder.kind, holder.reason) == ("unknown", "unreadable")


def test_pids_that_cannot_be_are_exited(procfs: Procfs) -> None:
    assert {holder.reason for holder in procfs.holders([0, -1, 2**32 - 1]).values()} == {"exited"}


def test_the_evidence_is_short_and_printable(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD.strip().encode() + b"/\x1b[31m\x00\xff\xe2\x80\xae\xc2\x85" + b"a" * 4000 + b"\n")
    holder = procfs.holders([7])[7]
    assert holder.kind == "pod"
    assert holder.cgroup.isprintable() and holder.cgroup.isascii() is False
    assert len(holder.cgroup) <= EVIDENCE_CHARACTERS
    assert holder.cgroup.startswith(IN_POD.strip())


def test_a_pid_that_is_used_again_has_the_new_owner(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD, start=1000)
    assert procfs.holders([7])[7].owner is not None
    tree.process(7, IN_OTHER_POD, start=2000)
    holder = procfs.holders([7])[7]
    assert holder.start_time == 2000
    assert holder.owner is not None and holder.owner.pod_uid == OTHER_POD


def test_a_zombie_with_a_used_pid_inherits_nothing(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD, start=1000)
    procfs.holders([7])
    tree.process(7, "0::/\n", start=2000, state="Z")
    holder = procfs.holders([7])[7]
    assert (holder.kind, holder.owner, holder.reason) == ("unknown", None, "zombie")


def test_a_moved_process_is_noticed_within_a_minute(tree: Tree, procfs: Procfs, clock: Clock) -> None:
    tree.process(7, IN_POD)
    first = procfs.holders([7])
    tree.file("7/cgroup", IN_OTHER_POD)
    clock.now += BELIEVED_SECONDS - 1
    assert procfs.holders([7]) == first
    clock.now += 1
    moved = procfs.holders([7])[7].owner
    assert moved is not None and moved.pod_uid == OTHER_POD


def test_an_unchanged_process_is_the_same_object_also_when_it_is_read_again(
    tree: Tree, procfs: Procfs, clock: Clock
) -> None:
    tree.process(7, IN_POD)
    first = procfs.holders([7])[7]
    assert procfs.holders([7])[7] is first
    clock.now += BELIEVED_SECONDS
    assert procfs.holders([7])[7] is first


def test_a_process_that_was_not_asked_for_is_forgotten(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD)
    procfs.holders([7])
    procfs.holders([])
    tree.process(7, "0::/\n", state="Z")
    assert procfs.holders([7])[7].reason == "zombie"


def test_a_process_that_is_gone_keeps_nothing(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD)
    procfs.holders([7])
    tree.exit(7)
    holder = procfs.holders([7])[7]
    assert (holder.kind, holder.owner, holder.reason, holder.start_time) == ("unknown", None, "exited", None)


@pytest.mark.parametrize("late", [0, 2 * BELIEVED_SECONDS])
@pytest.mark.parametrize("end", [{"state": "Z"}, {"state": "D", "flags": 0x40000C}])
def test_a_dying_process_keeps_its_last_owner(
    tree: Tree, procfs: Procfs, clock: Clock, end: dict[str, object], late: float
) -> None:
    """cgroup v1 says `/` of a process as soon as it exits, while the driver may still tear down its memory."""
    tree.process(7, IN_POD)
    alive = procfs.holders([7])
    tree.process(7, "4:memory:/\n", **end)  # type: ignore[arg-type]
    clock.now += late
    assert procfs.holders([7]) == alive
    assert procfs.holders([7]) == alive


def test_a_dying_process_seen_for_the_first_time_is_not_taken_for_the_hosts(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, "4:memory:/\n", state="D", flags=0x40000C)
    tree.process(8, IN_POD, state="D", flags=0x40000C)
    holders = procfs.holders([7, 8])
    assert (holders[7].kind, holders[7].reason) == ("unknown", "exited")
    assert holders[8].kind == "pod"


def test_where_the_cgroup_outlasts_the_process_it_is_believed(tree: Tree, procfs: Procfs) -> None:
    """Version 2 shows the cgroup of whoever has ended. Beside version 1 its line may be another's."""
    tree.process(7, IN_POD, state="Z")
    tree.process(8, "0::/user.slice/user-1000.slice/session-4.scope\n", state="Z")
    tree.process(9, "4:memory:/\n0::/system.slice/containerd.service\n", state="Z")
    holders = procfs.holders([7, 8, 9])
    assert [holders[pid].kind for pid in (7, 8, 9)] == ["pod", "host", "unknown"]
    assert holders[9].reason == "zombie"


THREADS = 7000


def test_a_living_thread_is_found_behind_any_number_that_have_ended(tree: Tree, procfs: Procfs) -> None:
    """Each cycle looks at some of them."""
    tree.process(7, "4:memory:/\n", state="Z")
    tree.file("7/stat", (tree.root / "7/stat").read_text().replace("0 0 1000", f"{THREADS} 0 1000"))
    ended = (tree.root / "7/stat").read_text()
    for number in range(THREADS):
        folder = tree.root / f"7/task/{number}"
        folder.mkdir(parents=True)
        (folder / "stat").write_text(ended)
    in_the_middle = sorted((tree.root / "7/task").iterdir(), key=lambda path: path.name)[THREADS // 2]
    tree.process(f"7/task/{in_the_middle.name}", IN_POD)
    cycles = [procfs.holders([7])[7] for _ in range(8)]
    assert cycles[-1].kind == "pod"
    assert [holder.reason for holder in cycles if holder.kind != "pod"] == ["zombie"] * (8 - _pods(cycles))


def _pods(holders: list[Holder]) -> int:
    return sum(holder.kind == "pod" for holder in holders)


def test_without_a_readable_cgroup_a_process_is_unknown(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, "")
    tree.process(8, None)
    (tree.root / "8/cgroup").mkdir()
    holders = procfs.holders([7, 8])
    assert (holders[7].kind, holders[7].reason) == ("unknown", "unrecognised")
    assert (holders[8].kind, holders[8].reason) == ("unknown", "unreadable")


def test_with_hidden_processes_a_missing_pid_is_hidden(tree: Tree, procfs: Procfs) -> None:
    """hidepid=2: even PID 1 is not there."""
    tree.reader(IN_POD, pid=INITIAL["pid"])
    assert procfs.holders([7])[7].reason == "hidden"
    tree.process(1, "0::/init.scope\n")
    assert procfs.holders([7])[7].reason == "exited"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_process_that_may_not_be_read_is_hidden() -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        tree.root.chmod(0o755)
        tree.process(7, IN_POD)
        (tree.root / "7").chmod(0o700)
        os.seteuid(65534)
        try:
            holder = Procfs(tree.root).holders([7])[7]
        finally:
            os.seteuid(0)
    assert (holder.kind, holder.reason) == ("unknown", "hidden")


def test_the_root_cgroup_is_the_hosts_only_in_the_first_namespace(tree: Tree, procfs: Procfs) -> None:
    tree.process(1, "0::/init.scope\n")
    tree.process(7, "0::/\n")
    assert procfs.holders([7])[7].kind == "host"
    tree.reader("0::/\n", pid=INITIAL["pid"], cgroups=4026532001)
    holder = Procfs(tree.root).holders([7])[7]
    assert (holder.kind, holder.reason) == ("unknown", "private_cgroup_namespace")


def test_with_the_nodes_pids_nothing_is_wrong(tree: Tree, procfs: Procfs) -> None:
    tree.process(1, "0::/init.scope\n")
    tree.reader(IN_POD, pid=INITIAL["pid"])
    assert procfs.fault() is None


@pytest.mark.parametrize(
    ("first", "ours"),
    [
        ("0::/\n", "0::/\n"),
        (IN_POD, IN_POD),
        (f"0::/kubepods/pod{POD}/{OTHER_ID}\n", IN_POD),
        (f"0::/../cri-containerd-{OTHER_ID}.scope\n", "0::/\n"),
        (f"0::/docker/{ID}\n", f"0::/docker/{ID}\n"),
    ],
    ids=["private cgroups", "one container", "shared by the pod", "shared, private cgroups", "docker"],
)
def test_in_a_pods_own_pid_namespace_attribution_is_off(tree: Tree, procfs: Procfs, first: str, ours: str) -> None:
    tree.process(1, first)
    tree.reader(ours)
    tree.process(7, IN_OTHER_POD)
    fault = procfs.fault()
    assert fault is not None and fault.reason == "no_host_pid"
    assert fault.detail == "process attribution off: run the pod with hostPID: true"
    holder = procfs.holders([7])[7]
    assert (holder.kind, holder.owner, holder.reason) == ("unknown", None, "no_host_pid")


@pytest.mark.parametrize(
    ("first", "above", "ours"),
    [
        ("0::/../../../../init.scope\n", "/../..", "0::/\n"),
        ("0::/init.scope\n", "/kubelet/kubepods", f"0::/kubelet/kubepods/pod{POD}/{ID}\n"),
        (
            f"0::/docker/{OTHER_ID}/init.scope\n",
            f"/docker/{OTHER_ID}/kubelet/kubepods",
            f"0::/docker/{OTHER_ID}/kubelet/kubepods/pod{POD}/{ID}\n",
        ),
    ],
)
def test_a_node_that_is_a_container_is_a_node(tree: Tree, procfs: Procfs, first: str, above: str, ours: str) -> None:
    tree.process(1, first)
    tree.reader(ours)
    tree.process(7, f"0::{above}/pod{OTHER_POD}/{OTHER_ID}\n")
    assert procfs.fault() is None
    assert procfs.holders([7])[7].kind == "pod"


def test_a_pod_of_another_kubelet_is_not_this_nodes(tree: Tree, procfs: Procfs) -> None:
    """Somebody runs kind, or what looks like it, beside the kubelet's own pods."""
    tree.process(1, "0::/init.scope\n")
    tree.reader(IN_POD)
    tree.process(7, f"0::/docker/{OTHER_ID}/kubelet/kubepods/pod{OTHER_POD}/{OTHER_ID}\n")
    holder = procfs.holders([7])[7]
    assert holder.kind == "container"
    assert holder.owner == Owner(container_id=OTHER_ID, runtime="docker")


def test_the_hosts_proc_mounted_into_a_pod_speaks_of_other_pids(tree: Tree, procfs: Procfs) -> None:
    tree.process(1, "0::/init.scope\n")
    tree.reader(IN_POD, nspid="4321\t7")
    fault = procfs.fault()
    assert fault is not None and fault.reason == "no_host_pid"


def test_without_any_sign_there_is_no_fault(procfs: Procfs) -> None:
    assert procfs.fault() is None


def test_failures_leave_no_descriptor_open(tree: Tree, procfs: Procfs) -> None:
    tree.process(7, IN_POD)
    tree.file("7/stat", "nonsense")
    tree.process(8, None)
    tree.process(9, IN_POD)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        procfs.holders([7, 8, 9, 10])
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
