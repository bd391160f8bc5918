"""Faults that the fake driver and the fake kubelet can play, and how an agent says which one it is."""

from collections.abc import Callable
from dataclasses import dataclass

import pynvml
from grpclib.const import Status

from podgpu.kube._gen.pods_pb2 import ListResponse
from tests.fakekubelet.kubelet import Reply
from tests.fakekubelet.rig import given
from tests.fakenvml.fake_node import FakeFault, h200

DEVICES, PODS = "/v1.PodResourcesLister/List", "/v1alpha1.Pods/ListPods"
WATCH = "/v1alpha1.Pods/WatchPods"
MIB = 1 << 20


def sound() -> dict[str, Reply]:
    return {
        DEVICES: Reply(given(h200(0).uuid.encode())),
        PODS: Reply(ListResponse().SerializeToString()),
        WATCH: Reply(b"\x08\x04", hangs=True),
    }


@dataclass(frozen=True)
class Play:
    """`shows` are the series that say so: name and labels, with the value that it has while the fault lasts."""

    id: str
    shows: tuple[str, dict[str, str], float]
    driver: tuple[FakeFault, ...] = ()
    kubelet: Callable[[], dict[str, Reply]] = dict
    kubelet_is_away: bool = False


def _returns(code: int) -> str:
    return f"return {code}"


CARD_DOWN = ("podgpu_gpu_up", {"gpu": "1"}, 0.0)
MAP_DOWN = ("podgpu_source_up", {"source": "podresources"}, 0.0)

PLAYS = (
    Play("A1", CARD_DOWN, (FakeFault("hang", call="nvmlDeviceGetMemoryInfo_v2", device=1),)),
    Play("A2", CARD_DOWN, (FakeFault(_returns(pynvml.NVML_ERROR_GPU_IS_LOST), device=1),)),
    Play("A8", CARD_DOWN, (FakeFault(_returns(pynvml.NVML_ERROR_UNKNOWN), device=1),)),
    Play("B1", MAP_DOWN, kubelet_is_away=True),
    Play("B2", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(hangs=True)}),
    Play("B4", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(bytes(17 * MIB))}),
    Play("B5", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(status=Status.RESOURCE_EXHAUSTED)}),
    Play("B6", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(status=Status.FAILED_PRECONDITION)}),
    Play("B7", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(b"\x0a\xff")}),
    Play("N12", MAP_DOWN, kubelet=lambda: {DEVICES: Reply(b"\x0a\x00" * (4 * MIB))}),
)
