import asyncio
import socket
from pathlib import Path

import pytest

from podgpu import library
from podgpu.sources.dcgm import options as dcgm
from tests.fakeapi.recorded import changed
from tests.fakeapi.recorded import pod as made
from tests.fakeapi.server import FakeApi
from tests.fakenvml.conftest import library as nvml
from tests.fakenvml.fake_node import FakeNode, environment, h200
from tests.patience import until
from tests.sources.dcgm.exporter import FakeExporter, recorded

__all__ = ["nvml"]

T4 = recorded("k8s_484_lowercase_hostname_t4")


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PODGPU_KUBE_API", "off")
    monkeypatch.setenv("PODGPU_PATH_KUBELET", str(tmp_path / "kubelet"))
    monkeypatch.setenv("PODGPU_PATH_LOGS", str(tmp_path / "log"))


async def test_the_first_snapshot_is_there_on_entering() -> None:
    async with library.Node(source="simulator", node_name="worker-1") as node:
        snapshot = node.snapshot
        assert node.ready
    assert (snapshot.node, snapshot.demo, len(snapshot.cards)) == ("worker-1", True, 8)


async def test_the_driver_has_answered_on_entering(nvml: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeNode([h200(0)]).write(tmp_path / "script")
    for name, value in environment(nvml, tmp_path / "script").items():
        monkeypatch.setenv(name, value)
    async with library.Node(nvml_library=nvml, interval=2.0) as node:
        assert [card.gpu.uuid for card in node.snapshot.cards] == [h200(0).uuid]


async def test_pods_have_been_listed_on_entering() -> None:
    pod = changed(made("gpu-test", "uid-1"), namespace="default")
    async with FakeExporter(T4) as exporter, FakeApi(pods=[pod]) as api:
        options = {"source": "dcgm", "dcgm_url": exporter.url, "kube_api": api.url}
        async with library.Node(node_name="gpu-node-1", interval="100ms", **options) as node:
            [card] = node.snapshot.cards
            [tenant] = card.tenants
            await until(lambda: node.snapshot.cards[0].tenants[0].workload)
            [row] = library.gpu_metrics(node.snapshot, pod="gpu-test")
    assert tenant.container.pod_uid == "uid-1"
    assert (row.workload_kind, row.workload_name) == ("Pod", "gpu-test")


async def test_a_source_that_fails_is_down_and_no_exception() -> None:
    async with (
        FakeExporter(T4, status=503) as exporter,
        library.Node(source="dcgm", dcgm_url=exporter.url) as node,
    ):
        [part] = node.snapshot.parts
    assert part.fault and part.fault.reason == "page_refused"


async def test_it_reads_until_it_is_left_and_leaves_nothing_behind() -> None:
    async with FakeExporter(T4) as exporter:
        before = asyncio.all_tasks()
        async with library.Node(source="dcgm", dcgm_url=exporter.url, interval="100ms"):
            await until(lambda: len(exporter.requests) >= 3)
        assert asyncio.all_tasks() == before
        asked = len(exporter.requests)
        await asyncio.sleep(0.3)
        assert len(exporter.requests) == asked


async def test_cancelling_the_start_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        node = library.Node(source="dcgm", dcgm_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(node.__aenter__(), 0.2)
    assert asyncio.all_tasks() == before


async def test_a_node_runs_once() -> None:
    node = library.Node(source="simulator")
    async with node:
        pass
    with pytest.raises(RuntimeError, match="make another one"):
        async with node:
            pass


def test_before_it_is_entered_it_is_starting() -> None:
    node = library.Node(source="simulator")
    [part] = node.snapshot.parts
    assert not node.ready
    assert part.fault and part.fault.reason == "starting"


def test_options_are_texts_or_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODGPU_INTERVAL", "7s")
    monkeypatch.setenv("PODGPU_SERIES_LIMIT", "500")
    config = library.Node(source="simulator", interval=0.5, kube_pod_labels=["a", "b"], dcgm_url=None).config
    assert (config.interval, config.kube_pod_labels, config.of(dcgm.DcgmOptions).url) == (
        0.5,
        ("a", "b"),
        None,
    )
    assert config.series_limit == 500
    assert library.Node(source="simulator", interval="2m").config.interval == 120


def test_a_config_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    config = library.Config(source="simulator", interval=3.0)
    monkeypatch.setenv("PODGPU_INTERVAL", "7s")
    assert library.Node(config).config is config
    with pytest.raises(TypeError, match="not both"):
        library.Node(config, interval=1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"intervall": 1}, "unknown option 'intervall'; did you mean interval?"),
        ({"interval": "soon"}, "--interval: 'soon' is not a duration"),
        ({"source": "dcgm"}, "give the address of its page with --dcgm.url="),
    ],
)
def test_a_wrong_option_says_what_to_do(options: dict[str, object], message: str) -> None:
    with pytest.raises(library.UserError) as error:
        library.Node(**options)
    assert message in str(error.value)
