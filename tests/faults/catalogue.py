"""Every fault that podgpu must survive: played in the matrix, tested elsewhere, or not playable, with the reason.

A to H are kinds of faults: of the driver, the kubelet, the API server, dcgm-exporter, processes and pods, the page,
HTTP and the agent itself. N are attacks that once succeeded.
"""

import os
from dataclasses import dataclass

from tests.faults.play import Phase, Play
from tests.faults.plays import PLAYS

# What the matrix does not play, and the test that does.
ELSEWHERE = {
    "N1": "agent/whole/test_two_tenants.py::test_who_ends_his_first_thread_still_pays",
    "N2": "agent/whole/test_two_tenants.py::test_who_calls_himself_an_mps_server_still_pays",
    "N3": "agent/whole/test_two_tenants.py::test_a_process_that_nobody_sees_is_on_nobodys_bill",
    "N4": "agent/whole/test_two_tenants.py::test_a_process_that_began_after_the_reading_has_a_pid_by_chance",
    "N5": "agent/whole/test_two_tenants.py::test_who_names_his_cgroup_after_a_pod_below_his_own_is_not_that_pod",
    "N6": "agent/whole/test_two_tenants.py::test_who_writes_a_small_number_on_his_pod_still_pays",
    "N7": "kube/test_floods.py::test_fat_pods_blind_nobody_on_the_kubelets_socket",
    "N11": "sharing/test_least.py::test_long_notes_are_read_once_however_often_something_else_changes",
}

# What nobody can play here.
NOT_PLAYED = {
    "H1": "the kernel kills at a memory limit, which takes a cgroup of one's own; bench measures the memory",
    "H2": "processor time is limited by a cgroup of one's own",
    "H9": "two agents on one node are two of Kubernetes' making",
}

# What has no entry yet: the next to be written down or played.
OPEN = (
    *("H3", "H4", "H5", "H6", "H7", "H8", "H10", "H11"),
    *("N8", "N9", "N10", "N13", "N14", "N15"),
)

KINDS = {
    "A": "GPU and driver",
    "B": "kubelet",
    "C": "API server",
    "D": "dcgm-exporter",
    "E": "processes and pods",
    "F": "the page's text",
    "G": "HTTP clients",
    "H": "the agent itself",
    "N": "attacks",
}
COUNTS = {"A": 16, "B": 8, "C": 9, "D": 7, "E": 8, "F": 6, "G": 8, "H": 11, "N": 15}
PLAYED = {play.fault_id for play in PLAYS}

# What is played every time; all the rest takes `make matrix`. At least one of each kind.
FEW = {
    "A1": (Phase.STOP,),
    "B1": (Phase.RUNNING,),
    "C7": (Phase.SCRAPE,),
    "D5": (Phase.RUNNING,),
    "N12": (Phase.START,),
}


@dataclass(frozen=True)
class Cell:
    """A fault in a phase."""

    play: Play
    phase: Phase

    def __str__(self) -> str:
        return f"{self.play.id}-{self.phase}"


def is_whole() -> bool:
    return os.environ.get("PODGPU_TEST_MATRIX") == "all"


def cells() -> list[Cell]:
    every = [Cell(play, phase) for play in PLAYS for phase in play.phases]
    return [cell for cell in every if is_whole() or cell.phase in FEW.get(cell.play.id, ())]
