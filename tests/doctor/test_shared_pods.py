"""Whether pods that share a GPU are found on the pages of dcgm-exporter."""

import pytest
from msgspec.structs import replace

from podgpu.doctor import examine
from podgpu.model import ContainerRef, Tenant
from tests.doctor.sound_node import HERE, SOUND, TENANT, WHOLE


@pytest.mark.parametrize(
    ("splits", "status", "detail"),
    [
        (None, "SKIP", "no address speaks dcgm"),
        (False, "WARN", "pods that share a GPU have no rows of their own: GPU 0"),
        (True, "PASS", "each container has rows of its own: GPU 0"),
    ],
)
def test_rows_of_their_own_are_suggested_where_pods_share_a_card(splits: bool | None, status: str, detail: str) -> None:
    other = ContainerRef("team-b", "second", "main", "uid-2")
    second = Tenant(container=other, claims=(replace(TENANT.claims[0], container=other),))
    shared = replace(SOUND, cards=(replace(WHOLE, tenants=(TENANT, second)),))
    (finding,) = (
        finding
        for finding in examine(shared, replace(HERE, splits_shared=splits))
        if finding.id == "dialect.shared-pods"
    )
    assert (finding.status, finding.detail) == (status, detail)


def test_a_card_of_one_pod_needs_no_rows_of_their_own() -> None:
    (finding,) = (finding for finding in examine(SOUND, HERE) if finding.id == "dialect.shared-pods")
    assert finding.detail == "no GPU is shared by several pods now"
