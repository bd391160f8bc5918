"""Names of devices that say too little."""

from tests.sharing.dra.test_dra import held, offered, row


def test_old_names_of_instances_need_the_slices() -> None:
    """NVIDIA's driver 25.3 to 25.8 has no profile in words in them."""
    old = "gpu-7-mig-19-0-1"
    assert held(row(old)) == []
    (claim,) = held(row(old), pools=[offered(old, uuid="MIG-right")])
    assert claim.mig == "MIG-right"
