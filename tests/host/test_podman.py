"""Names of Podman's containers."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.host.owner_names import PODMAN_FOLDER, Podman
from tests.host.machine import write, write_podman

ID, OTHER, THIRD = "1" * 64, "2" * 64, "3" * 64


def test_a_container_has_its_first_name_in_the_list(tmp_path: Path) -> None:
    write_podman(tmp_path, {"id": ID, "names": ["web", "alias"], "image": "x"}, {"id": OTHER, "names": None})
    podman = Podman(tmp_path)
    assert [podman.name(container_id) for container_id in (ID, OTHER, THIRD)] == ["web", None, None]


def test_a_container_that_goes_when_it_ends_is_in_a_list_of_its_own(tmp_path: Path) -> None:
    podman = Podman(tmp_path)
    assert podman.name(ID) is None
    write_podman(tmp_path, {"id": ID, "names": ["passing"]}, file="volatile-containers.json")
    write_podman(tmp_path, {"id": OTHER, "names": ["staying"]})
    assert [podman.name(ID), podman.name(OTHER)] == ["passing", "staying"]


def test_a_name_that_podman_could_not_give_is_not_believed(tmp_path: Path) -> None:
    write_podman(tmp_path, {"id": ID, "names": ["a/b"]}, {"id": OTHER, "names": []})
    assert [Podman(tmp_path).name(container_id) for container_id in (ID, OTHER)] == [None, None]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.sampled_from([b"[" * 100_000, b"{}", b'[{"id": 1}]', b"[null]"]))
def test_any_list_is_survived(tmp_path: Path, text: bytes) -> None:
    write(tmp_path, f"{PODMAN_FOLDER}/containers.json", text)
    assert Podman(tmp_path).name(ID) is None
