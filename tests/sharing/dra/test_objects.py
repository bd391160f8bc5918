import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podgpu.kube.api import MALFORMED
from podgpu.kube.resource_objects import (
    SlicePool,
    SliceSpec,
    decode_claim,
    decode_device,
    decode_slice,
    to_claim,
    to_device,
)
from podgpu.model import PoolDevice


def test_attributes_of_every_kind_become_text() -> None:
    item = {
        "name": "gpu-0",
        "attributes": {
            "uuid": {"string": "GPU-1"},
            "gpu.nvidia.com/index": {"int": 0},
            "healthy": {"bool": False},
            "driverVersion": {"version": "580.159.4"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
            "links": {"strings": ["a", "b"]},
        },
    }
    spec = SliceSpec(driver="gpu.nvidia.com", pool=SlicePool(name="node-1"))
    assert to_device(spec, decode_device(json.dumps(item))) == PoolDevice(
        driver="gpu.nvidia.com",
        pool="node-1",
        device="gpu-0",
        attributes={
            "uuid": "GPU-1",
            "index": "0",
            "healthy": "false",
            "driverVersion": "580.159.4",
            "resource.kubernetes.io/pcieRoot": "pci0000:00",
        },
    )


def test_only_pods_are_taken_for_pods() -> None:
    item = {
        "metadata": {"name": "c", "namespace": "ns"},
        "status": {
            "allocation": {"devices": {}},
            "reservedFor": [
                {"resource": "pods", "name": "p", "uid": "u1"},
                {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u2"},
            ],
        },
    }
    claim = to_claim(decode_claim(json.dumps(item)))
    assert claim and claim.pod_uids == ("u1",)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "metadata",
                    "name",
                    "namespace",
                    "spec",
                    "status",
                    "allocation",
                    "devices",
                    "results",
                    "pool",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_an_answer_holds_it_is_an_object_or_malformed(item: Any) -> None:
    text = json.dumps(item)
    for decode in (decode_claim, decode_slice, decode_device):
        try:
            decode(text)
        except MALFORMED:
            continue
