import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podgpu.host import cgroup
from podgpu.model import Owner

RECORDED = Path(__file__).parents[2] / "recorded"

POD = "121157b5-c67d-4c3e-9052-cb27bbb711fb"
VICTIM = "4c9f1974-5c46-44c2-b42f-3bbf0e98eef9"
ID = "1cd3449e930b8a28c7595240fa32ba20c84f36d059e5fbe63104ad40057992d1"
OTHER_ID = "bacb920470900725e0aa7d914fee5eb0854315448b024b6b8420ad8429c607ba"
SYSTEMD = (
    f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{POD.replace('-', '_')}.slice"
    f"/cri-containerd-{ID}.scope"
)
CGROUPFS = f"/kubepods/burstable/pod{POD}/{ID}"


def owner_of(text: str) -> Owner | None:
    return cgroup.classify(text).owner


def owner_seen_from_a_pod_beside_it(text: str) -> Owner | None:
    return cgroup.classify(text, roots=cgroup.roots_above(text)).owner


def _samples() -> list[dict[str, str]]:
    with (RECORDED / "proc-pid-cgroup.tsv").open(encoding="utf-8") as table:
        return list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))


SAMPLES = _samples()
REAL_PODS = [sample for sample in SAMPLES if sample["pod_uid"]]


def _processes(name: str) -> Iterator[str]:
    """The text of each process's file."""
    text = (RECORDED / name / "proc-cgroup.txt").read_text()
    return (part.partition("\n")[2] for part in re.split(r"^# pid .*(?=\n)", text, flags=re.MULTILINE)[1:])


def _running(pod: dict[str, Any]) -> Iterator[tuple[str, str]]:
    uid = pod["metadata"].get("annotations", {}).get("kubernetes.io/config.hash", pod["metadata"]["uid"])
    for status in pod["status"].get("containerStatuses", []):
        yield uid, status.get("containerID", "").removeprefix("containerd://")


def _known_pods(name: str) -> set[tuple[str, str]]:
    """(pod UID in the cgroup, container id) of every container that the API server ever told of."""
    listed = json.loads((RECORDED / name / "api-pods-list.json").read_text())["items"]
    watch = RECORDED / name / "api-pods-watch.ndjson"
    events = [json.loads(event)["object"] for event in watch.read_text().splitlines()] if watch.exists() else []
    # A bookmark is an event with an empty pod.
    pods = [pod for pod in (*listed, *events) if "uid" in pod["metadata"]]
    return {container for pod in pods for container in _running(pod)}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["line"][:60])
def test_every_sample_is_read_as_its_system_meant_it(sample: dict[str, str]) -> None:
    owner = owner_seen_from_a_pod_beside_it(sample["line"] + "\n") or Owner()
    found = (owner.pod_uid or "", owner.container_id or "", owner.qos or "")
    assert found == (sample["pod_uid"], sample["container_id"], sample["qos"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["line"][:60])
def test_without_pod_and_container_there_is_no_owner(sample: dict[str, str]) -> None:
    named = bool(sample["pod_uid"] or sample["container_id"])
    assert (owner_seen_from_a_pod_beside_it(sample["line"]) is not None) is named


def test_of_all_samples_only_nodes_inside_of_others_need_a_reader_beside_them() -> None:
    nested = [recorded for recorded in REAL_PODS if (owner_of(recorded["line"]) or Owner()).pod_uid is None]
    assert len(nested) == 9
    assert all(re.search("docker|lxc|ecs", recorded["line"]) for recorded in nested)


def test_the_table_of_samples_is_whole() -> None:
    assert len(SAMPLES) == 83
    assert len(REAL_PODS) > 50


@pytest.mark.parametrize("name", ["kubernetes-1.36.4", "kubernetes-1.36.4-dra"])
def test_recorded_processes_belong_to_pods_that_the_api_server_knows(name: str) -> None:
    known = _known_pods(name)
    owners = [owner_of(text) for text in _processes(name)]
    assert len(owners) >= 6
    for owner in owners:
        assert owner is not None
        assert (owner.pod_uid, owner.container_id) in known


def test_recorded_quality_of_service_is_the_pods_own() -> None:
    listed = json.loads((RECORDED / "kubernetes-1.36.4-dra/api-pods-list.json").read_text())["items"]
    classes = {uid: pod["status"]["qosClass"].lower() for pod in listed for uid, _ in _running(pod)}
    for text in _processes("kubernetes-1.36.4-dra"):
        owner = owner_of(text)
        assert owner is not None and owner.pod_uid is not None
        assert owner.qos == classes[owner.pod_uid]


def test_recorded_processes_of_a_real_gpu_are_three_pods_and_a_host_process() -> None:
    processes = json.loads((RECORDED / "h200-kubelet-1.36.4/nvml.json").read_text())["processes"]
    kinds = {pid: cgroup.classify(process["cgroup"]).kind for pid, process in processes.items()}
    assert kinds == {"2002": "host", "2181": "pod", "2188": "pod", "2190": "pod"}


@pytest.mark.parametrize(
    ("path", "runtime"),
    [
        (SYSTEMD, "containerd"),
        (CGROUPFS, None),
        (f"/kubepods/pod{POD}/crio-{ID}", "cri-o"),
        (f"/kubepods.slice/kubepods-pod{POD}.slice/cri-o-{ID}.scope", "cri-o"),
        (f"/kubepods.slice/kubepods-pod{POD}.slice/crio-conmon-{ID}.scope", "cri-o"),
        (f"/kubepods.slice/kubepods-pod{POD}.slice/docker-{ID}.scope", "docker"),
        (f"/system.slice/containerd.service/kubepods-pod{POD}.slice:cri-containerd:{ID}", "containerd"),
        (f"/docker/{ID}", "docker"),
        (f"/machine.slice/libpod-{ID}.scope/container", "podman"),
        (f"/system.slice/a.service/libpod-payload-{ID}", "podman"),
        (f"/system.slice/nerdctl-{ID}.scope", "nerdctl"),
        (f"/{ID}", None),
    ],
)
def test_the_runtime_is_named_where_the_path_tells(path: str, runtime: str | None) -> None:
    owner = owner_of(f"0::{path}\n")
    assert owner is not None and owner.runtime == runtime


@pytest.mark.parametrize(
    "name",
    [
        f"pod{POD}x",
        f"pod{POD[:-1]}",
        f"pod{POD.upper()}",
        f"xpod{POD}",
        f"pod{POD}0",
        "pod" + "a" * 31,
        "pod" + "a" * 33,
        "pod" + POD.replace("-", "."),
        "pod",
    ],
)
def test_what_is_nearly_a_pod_is_unknown_and_not_the_hosts(name: str) -> None:
    match = cgroup.classify(f"0::/kubepods/burstable/{name}/{ID}\n")
    assert (match.kind, match.owner, match.reason) == ("unknown", None, "unrecognised")


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("0::/system.slice/ssh.service\n", "host", ""),
        ("1:name=systemd:/\n0::/\n", "host", ""),
        (f"0::/docker/{ID}\n", "container", ""),
        ("0::/../../..\n", "unknown", "private_cgroup_namespace"),
        ("0::/../../../../system.slice/ssh.service\n", "host", ""),
        ("0::/../../../../init.scope\n", "host", ""),
        ("0::/../something\n", "unknown", "private_cgroup_namespace"),
        (f"0::/../crio-{ID}.scope\n", "unknown", "private_cgroup_namespace"),
        (f"0::/../../../../system.slice/docker-{ID}.scope\n", "container", ""),
        (f"11:memory:/kata_overhead/{ID}\n", "unknown", "unrecognised"),
        ("4:pids:/lxc/mysql\n", "unknown", "unrecognised"),
        ("0::/kubepods/burstable\n", "unknown", "unrecognised"),
        ("", "unknown", "unrecognised"),
        ("nonsense", "unknown", "unrecognised"),
    ],
)
def test_processes_of_no_pod_have_a_kind(text: str, kind: str, reason: str) -> None:
    match = cgroup.classify(text)
    assert (match.kind, match.reason) == (kind, reason)


def test_the_root_proves_nothing_to_a_reader_in_a_private_namespace() -> None:
    match = cgroup.classify("1:name=systemd:/\n0::/\n", private=True)
    assert (match.kind, match.reason) == ("unknown", "private_cgroup_namespace")
    assert cgroup.classify(f"0::/../../pod{POD}/{ID}\n", private=True).kind == "pod"


def test_a_line_with_a_pod_beats_the_others_and_is_the_evidence() -> None:
    decisive = f"4:memory:{CGROUPFS}"
    text = f"9:name=systemd:/docker/{OTHER_ID}\n{decisive}\n0::/system.slice/containerd.service\n"
    assert cgroup.classify(text).line == decisive
    owner = owner_of(text)
    assert owner is not None and owner.pod_uid == POD


def test_the_line_with_the_container_beats_the_one_with_the_pod_alone() -> None:
    decisive = f"4:memory:{CGROUPFS}"
    assert cgroup.classify(f"5:pids:/kubepods/burstable/pod{POD}\n{decisive}\n").line == decisive


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("3:cpu:/a\n0::/system.slice/b.service\n", "0::/system.slice/b.service"),
        ("3:cpu:/\n0::/\n", "0::/"),
        ("3:cpu:/a\n2:pids:/b\n", "3:cpu:/a"),
        ("", ""),
    ],
)
def test_the_evidence_for_no_pod_is_the_unified_line_or_the_first(text: str, line: str) -> None:
    assert cgroup.classify(text).line == line


def test_lines_that_name_two_pods_prove_neither() -> None:
    match = cgroup.classify(f"4:memory:/kubepods/pod{VICTIM}/{OTHER_ID}\n0::{CGROUPFS}\n")
    assert (match.kind, match.owner, match.reason) == ("unknown", None, "unrecognised")


def test_two_containers_of_one_pod_prove_the_pod_only() -> None:
    owner = owner_of(f"4:memory:/kubepods/burstable/pod{POD}/{OTHER_ID}\n0::{CGROUPFS}\n")
    assert owner == Owner(pod_uid=POD, qos="burstable")


def test_a_removed_cgroup_still_names_its_pod() -> None:
    owner = owner_of(f"0::{SYSTEMD} (deleted)\n")
    assert owner is not None and (owner.pod_uid, owner.container_id) == (POD, ID)


def _hostile() -> Iterator[str]:
    size = 65500
    yield "0::/" + "a" * size
    yield "0::/" + "a/" * (size // 2)
    yield "0::/" + "kubepods/" * (size // 9)
    yield "0::/" + "kubepods-" * (size // 9)
    yield "0::/" + "-kubepods-pod" * (size // 13) + ".slice"
    yield "0::/" + f"{ID}/" * (size // 65)
    yield "0::/" + f"docker-{ID}.scope/" * (size // 78)
    yield "0::/kubepods/" + "burstable/" * (size // 10)
    yield "0::/" + "../" * (size // 3)
    yield "".join(f"{n}:x:/kubepods/pod{n}\n" for n in range(size // 25))
    yield "0::/machine-" + "-" * size
    yield ":" * size
    yield "\n" * size


@pytest.mark.parametrize("text", list(_hostile()), ids=lambda text: repr(text[:24]))
def test_hostile_text_costs_little(text: str) -> None:
    started = time.process_time()
    assert cgroup.classify(text).kind != "pod"
    assert time.process_time() - started < 2  # a thousand times what it takes, and less than by trying all pairs


def test_what_is_longer_than_the_kernel_writes_is_cut_at_a_line() -> None:
    pod = f"0::{CGROUPFS}\n"
    assert cgroup.classify(pod + "1:x:/" + "a" * 70000).kind == "pod"
    assert cgroup.classify("1:x:/" + "a" * 70000).kind == "unknown"


@given(st.text())
def test_any_text_is_judged(text: str) -> None:
    match = cgroup.classify(text)
    assert match.kind in ("pod", "container", "host", "unknown")
    assert (match.kind == "unknown") is bool(match.reason)
    assert match.line in text


_KUBELET = [
    "kubepods",
    "kubepods.slice",
    "burstable",
    f"pod{VICTIM}",
    f"kubepods-pod{VICTIM}.slice",
    f"pod{POD}",
]
_OTHERS = [
    "..",
    "docker",
    "user.slice",
    ID,
    f"docker-{ID}.scope",
    f"cri-containerd-{ID}.scope",
    "pod",
    "x",
    "",
]
_NAMES = st.sampled_from(_KUBELET + _OTHERS)


@given(st.lists(_NAMES, max_size=10), st.sampled_from([SYSTEMD, CGROUPFS]))
def test_a_foreign_name_deeper_in_the_path_never_wins(below: list[str], path: str) -> None:
    owner = owner_of("0::" + "/".join([path, *below]) + "\n")
    assert owner is not None
    assert (owner.pod_uid, owner.container_id) == (POD, ID)


@given(
    st.uuids(),
    st.lists(st.sampled_from("-_"), min_size=4, max_size=4),
    st.sampled_from(["besteffort", "burstable"]),
)
def test_a_uid_comes_out_with_dashes_however_it_was_written(uid: object, marks: list[str], qos: str) -> None:
    parts = str(uid).split("-")
    written = parts[0] + "".join(mark + part for mark, part in zip(marks, parts[1:], strict=True))
    owner = owner_of(f"0::/kubepods.slice/kubepods-{qos}.slice/kubepods-{qos}-pod{written}.slice/crio-{ID}.scope\n")
    assert owner == Owner(pod_uid=str(uid), container_id=ID, runtime="cri-o", qos=qos)


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_the_hash_of_a_static_pod_stays_as_it_is(static_hash: str) -> None:
    owner = owner_of(f"7:memory:/kubepods/besteffort/pod{static_hash}/{ID}\n")
    assert owner is not None and owner.pod_uid == static_hash


@given(st.sampled_from(REAL_PODS), st.data())
def test_a_damaged_real_line_never_names_a_pod_that_is_not_in_it(sample: dict[str, str], data: st.DataObject) -> None:
    line = sample["line"]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(line)))
        length = data.draw(st.integers(0, 8))
        line = line[:at] + data.draw(st.text("ab01-_/.:\n\x00dpo", max_size=6)) + line[at + length :]
    owner = owner_of(line)
    if owner is not None and owner.pod_uid is not None:
        assert f"pod{owner.pod_uid}" in line.replace("_", "-")
    if owner is not None and owner.container_id is not None:
        assert owner.container_id in line
