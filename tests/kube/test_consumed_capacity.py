"""What a claim consumes, and what a device has."""

import json

import pytest

from podgpu.kube.resource_objects import (
    SlicePool,
    SliceSpec,
    decode_claim,
    decode_device,
    to_claim,
    to_device,
)
from podgpu.model import ClaimedDevice

DRIVER = "gpu.nvidia.com"
SHARE = "0a8d5f9e-7c59-4d2f-9a37-1c7c6f0e1b11"


def test_a_part_of_a_device_has_a_name_and_what_it_consumes() -> None:
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": "node-1",
        "device": "gpu-0",
        "shareID": SHARE,
        "consumedCapacity": {f"{DRIVER}/memory": "10Gi", "cores": 30},
    }
    item = {
        "metadata": {"name": "c", "namespace": "ns"},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    claim = to_claim(decode_claim(json.dumps(item)))
    assert claim is not None
    assert claim.devices == (
        ClaimedDevice(
            request="gpu",
            driver=DRIVER,
            pool="node-1",
            device="gpu-0",
            share_id=SHARE,
            consumed={"memory": "10Gi", "cores": "30"},
        ),
    )


@pytest.mark.parametrize("basic", [False, True])
def test_a_device_has_a_capacity(*, basic: bool) -> None:
    """v1beta1 has it one level deeper."""
    described = {"capacity": {f"{DRIVER}/memory": {"value": "80Gi"}, "cores": {"value": "100"}}}
    item = {"name": "gpu-0"} | ({"basic": described} if basic else described)
    spec = SliceSpec(driver=DRIVER, pool=SlicePool(name="node-1"))
    assert to_device(spec, decode_device(json.dumps(item))).capacity == {"memory": "80Gi", "cores": "100"}
