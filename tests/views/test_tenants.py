"""Those outside Kubernetes, on a machine without it and on a node of a cluster."""

import pytest
from hypothesis import given
from msgspec.structs import replace

from podgpu.model import Booking, ContainerRef, Holder, Process, Rest, Snapshot, Tenant
from podgpu.views.tenants import full_name, outsider_names, owner_titles
from podgpu.views.why_evidence import pod_names
from tests.tree import held
from tests.views.concluded import html, table, why, why_outsider
from tests.views.quirks import BUSY, LLAMA, SNAPSHOT
from tests.views.test_native import SNAPSHOTS

WEB = ContainerRef("", "", "docker/web")


def bare(container: ContainerRef = WEB, *others: Tenant) -> Snapshot:
    """One outsider on one card, with an account of its own."""
    holder = Holder(
        pid=424,
        kind="container",
        container=container,
        title=container.container,
        command="python3",
        user=1000,
        cgroup="0::/system.slice/docker-1.scope",
    )
    process = Process(pid=424, kinds=("compute",), memory_bytes=20 * 2**30, sm_ratio=0.8)
    tenant = Tenant(
        container=container,
        processes=(held(process, holder),),
        booking=Booking(method="measured", processes=1, memory_bytes=20 * 2**30),
        idle=False,
    )
    card = replace(BUSY, tenants=(tenant, *others), ended=(), rest=())
    return replace(SNAPSHOT, cards=(card,), pods=(), unclaimed=())


def node(title: str = "docker/web", kind: str = "container") -> Snapshot:
    """The same processes on a node of a cluster, where only their titles are known."""
    return replace(SNAPSHOT, cards=(replace(BUSY, rest=tuple(_titled(rest, title, kind) for rest in BUSY.rest)),))


def _titled(rest: Rest, title: str, kind: str) -> Rest:
    processes = [
        held(process, replace(process.holder, kind=kind, title=title))
        if process.pid == 1000 and process.holder
        else process
        for process in rest.processes
    ]
    return replace(rest, processes=tuple(processes))


def test_an_account_outside_kubernetes_is_written_as_its_title() -> None:
    assert full_name(WEB) == "docker/web"
    assert full_name(LLAMA) == "ml/llama-0/server"
    assert full_name(ContainerRef("", "", "docker/\x1b[31m")) == "docker/\ufffd[31m"


def test_whose_processes_are_is_told_once_each_and_bounded() -> None:
    processes = [
        held(Process(pid=pid, kinds=("compute",)), Holder(pid=pid, kind="host", title=f"user/{pid // 2}"))
        for pid in range(1000, 1010)
    ]
    assert owner_titles(processes, 2) == "user/500, user/501 +3 more"
    assert owner_titles([Process(pid=1), held(Process(pid=2), Holder(pid=2, kind="host"))], 2) == ""


def test_the_table_shows_an_outsider_without_a_share() -> None:
    (row,) = (row for row in table(bare(), 120, colour=False).splitlines() if "docker/web" in row)
    assert row.split() == ["docker/web", "-", "20.0", "-", "measured", "424"]


def test_the_table_names_those_who_have_no_account() -> None:
    rows = table(node(), 120, colour=False).splitlines()
    assert any(row.startswith("   other containers (4) docker/web ") for row in rows)


def test_the_page_shows_an_outsider_and_does_not_call_it_a_thief() -> None:
    page = html(bare(), 0.0).decode()
    assert "   docker/web " in page
    assert "was not given" not in page
    assert "other containers (4) docker/web" in html(node(), 0.0).decode()


def test_a_title_cannot_break_the_page() -> None:
    page = html(bare(ContainerRef("", "", "docker/<script>")), 0.0).decode()
    assert "docker/<script>" not in page and "docker/&lt;script&gt;" in page
    assert "docker/<script>" not in html(node("docker/<script>"), 0.0).decode()


def test_the_evidence_of_an_outsider_names_its_process_and_its_user() -> None:
    text = " ".join((why_outsider(bare(), "docker/web", 80) or "").split())
    for link in (
        "Owner docker/web, outside Kubernetes",
        "the container's id in the cgroup of each process; its name, where it can be read, from Docker's files",
        "pid 424, compute, 20.0 GiB, SM 80%, python3, user 1000",
        "0::/system.slice/docker-1.scope",
    ):
        assert link in text
    assert "without an allocation" not in text
    assert "UID" not in text


def test_a_title_without_a_system_says_nothing_about_how_it_is_known() -> None:
    """Such titles are in scrubbed recordings."""
    text = why_outsider(bare(ContainerRef("", "", "container-1a2b3c")), "container-1a2b3c", 80) or ""
    assert "Owner      container-1a2b3c, outside Kubernetes" in text
    assert "Known by" not in text


@pytest.mark.parametrize(("kind", "where"), [("container", "other containers"), ("host", "host processes")])
def test_an_outsider_on_a_node_of_a_cluster_has_evidence_but_no_account(kind: str, where: str) -> None:
    text = " ".join((why_outsider(node(kind=kind), "docker/web", 80) or "").split())
    assert "pid 1000" in text and "pid 1001" not in text
    assert f"It is outside Kubernetes. What it uses is booked to no pod, but to {where}." in text


def test_a_pod_is_never_taken_for_an_outsider_of_its_name() -> None:
    pod = ContainerRef("docker", "web", "main", "uid-web")
    both = bare(WEB, Tenant(container=pod, booking=Booking(busy_us=77_000_000)))
    of_the_pod, of_the_other = why(both, "docker", "web", 80), why_outsider(both, "docker/web", 80)
    assert of_the_pod and of_the_other
    assert "An owner outside Kubernetes has the same name; this is the pod." in of_the_pod
    assert "pid 424" not in of_the_pod and "busy 77.000000 s" in of_the_pod
    assert "pid 424" in of_the_other and "busy 77.000000 s" not in of_the_other
    assert (pod_names(both), outsider_names(both)) == (["docker/web"], ["docker/web"])


def test_nobody_is_found_by_a_part_of_a_title() -> None:
    assert why(bare(), "", "", 80) is None
    assert why(bare(), "docker", "web", 80) is None
    assert why_outsider(bare(), "", 80) is None
    assert why_outsider(bare(), "docker", 80) is None
    assert why_outsider(SNAPSHOT, "ml/llama-0", 80) is None


@given(SNAPSHOTS)
def test_every_outsider_that_is_named_has_a_report_without_codes_for_the_terminal(snapshot: Snapshot) -> None:
    for title in outsider_names(snapshot):
        text = why_outsider(snapshot, title, 80)
        assert text is not None
        assert not {"\x1b", "\x07", "\x9b"} & set(text)
