"""The evidence of a recording, and `podgpu fit` of one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podgpu.cli.main import main
from podgpu.cluster.fit.recording_reader import recorded_use
from podgpu.model import (
    Band,
    Booking,
    Card,
    Claim,
    Cluster,
    ClusterNode,
    ContainerRef,
    Gpu,
    Instance,
    MigInstance,
    Reading,
    Snapshot,
    Tenant,
    Workload,
)
from podgpu.model.frames import MAGIC, frame
from podgpu.views.cluster.json import encode

GIB = 1 << 30
START = 1_794_000_000 // 60 * 60
WHO = ContainerRef("ml", "chat-0", "main", "uid")
BAND = Band(elapsed_us=60_000_000, booked_us=0, least_us=0, most_us=0, booked_mj=0, least_mj=0, most_mj=0)


def moment(minute: int, *, mig: str = "") -> Cluster:
    """A node whose only tenant uses a GiB more each minute, and is busy for a tenth to a fifth of the time."""
    claim = Claim(gpu="GPU-1", container=WHO, mig=mig, system="exclusive", resource="nvidia.com/gpu")
    booking = Booking(
        memory_bytes=(minute + 1) * GIB,
        allocated_ratio=0.125 if mig else 1.0,
        likely_least_busy_us=6_000_000 * minute,
        likely_most_busy_us=12_000_000 * minute,
        band=BAND,
    )
    instance = Instance(
        mig=MigInstance(uuid=mig, profile="1g.18gb", gpu_instance_id=1, compute_instance_id=0),
        readings=(Reading("memory_total_bytes", 16.0 * GIB),),
    )
    card = Card(
        gpu=Gpu(uuid="GPU-1", index=0, model="NVIDIA H200"),
        readings=(Reading("memory_total_bytes", 141.0 * GIB),),
        instances=(instance,) if mig else (),
        tenants=(
            Tenant(
                container=WHO,
                mig=mig,
                workload=Workload(kind="Deployment", name="chat"),
                claims=(claim,),
                booking=booking,
            ),
        ),
    )
    at = float(START + minute * 60 + 5)
    snapshot = Snapshot(node="alpha", version="1", taken_at=at, interval_seconds=1.0, cards=(card,))
    node = ClusterNode(name="alpha", state="fresh", origin="agent", snapshot=snapshot)
    return Cluster(name="", version="1", taken_at=at, interval_seconds=1.0, nodes=(node,))


def moments(*minutes: int, mig: str = "") -> Iterator[Cluster]:
    return (moment(minute, mig=mig) for minute in minutes)


def test_minutes_are_taken_from_snapshots() -> None:
    found = recorded_use(moments(0, 1, 2, 3))
    [use] = found.uses
    assert (found.period.start, found.period.steps) == (START, 4)
    assert list(use.series.memory) == [GIB, 2 * GIB, 3 * GIB, 4 * GIB]
    assert list(use.series.most) == pytest.approx([-1, 0.2, 0.2, 0.2])
    assert list(use.series.least) == pytest.approx([-1, 0.1, 0.1, 0.1])
    assert (str(use.workload), use.workload.kind, use.held.kind) == ("ml/chat", "Deployment", "card")
    assert (use.watched_seconds, use.seen_ratio, use.replicas) == (240.0, 1.0, 1)
    assert use.busy_doubt == pytest.approx(0.1)


def test_minutes_that_were_not_recorded_are_not_seen() -> None:
    [use] = recorded_use(moments(0, 1, 8, 9)).uses
    assert list(use.series.memory)[2:8] == [-1] * 6
    assert use.seen_ratio == pytest.approx(0.4)


def test_an_instance_has_its_profile_and_its_memory() -> None:
    [use] = recorded_use(moments(0, 1, mig="MIG-1")).uses
    assert (use.held.kind, use.held.profile, use.held.memory_limit_bytes) == ("instance", "1g.18gb", 16 * GIB)
    assert use.held.ratio == 0.125


def test_the_command_judges_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "recording"
    file.write_bytes(MAGIC + b"".join(frame(each.taken_at, (encode(each),)) for each in moments(0, 1, 2)))
    assert main(["fit", f"--replay.file={file}", "-o", "json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["rows"]
    assert (row["workload_name"], row["advice"]) == ("chat", "unknown")
    assert row["why"][0] == "It was watched for 3 min; a day is needed."
    assert main(["fit", f"--replay.file={file}", "-o", "metrics"]) == 0
    page = capsys.readouterr().out
    assert 'podgpu_workload_fit_info{namespace="ml",workload_kind="Deployment",workload_name="chat"' in page
    assert "podgpu_workload_fit_peak_memory_bytes" in page


def test_without_evidence_the_command_names_both_ways_to_give_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit"]) == 2
    error = capsys.readouterr().err
    assert "--prometheus.url=http://HOST:9090" in error and "--replay.file=FILE" in error
