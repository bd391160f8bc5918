"""Names of Docker's containers."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.host.owner_names import Docker
from tests.host.machine import write, write_docker

ID, OTHER = "1" * 64, "2" * 64


def test_a_container_has_the_name_in_its_file_without_the_slash(tmp_path: Path) -> None:
    write_docker(tmp_path, ID, "/web")
    assert Docker(tmp_path).name(ID) == "web"
    assert Docker(tmp_path).name(OTHER) is None


def test_docker_may_keep_its_state_elsewhere(tmp_path: Path) -> None:
    docker = Docker(tmp_path)
    write_docker(tmp_path, ID, "/web", folder="/data/docker")
    assert docker.name(ID) is None
    write(tmp_path, "/etc/docker/daemon.json", '{"data-root": "/data/docker", "runtimes": {}}')
    assert docker.name(ID) == "web"


@pytest.mark.parametrize(
    "settings", ["", "[]", "{}", '{"data-root": 1}', '{"data-root": "data"}', '{"data-root": "/data/../etc"}']
)
def test_settings_that_name_no_folder_leave_the_usual_one(tmp_path: Path, settings: str) -> None:
    write_docker(tmp_path, ID, "/web")
    write(tmp_path, "/etc/docker/daemon.json", settings)
    assert Docker(tmp_path).name(ID) == "web"


def test_an_id_that_is_none_leads_to_no_file(tmp_path: Path) -> None:
    write(tmp_path, "/var/lib/docker/containers/config.v2.json", '{"Name": "/web"}')
    for container_id in ("", ".", "..", "../containers", ID[:12], ID.replace("1", "A")):
        assert Docker(tmp_path).name(container_id) is None


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    target = write_docker(tmp_path, OTHER, "/other")
    path = write_docker(tmp_path, ID, "/web")
    path.unlink()
    path.symlink_to(target)
    assert Docker(tmp_path).name(ID) is None


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    text = '{"Name": "/web", "Padding": "' + "x" * 2**20 + '"}'
    write(tmp_path, f"/var/lib/docker/containers/{ID}/config.v2.json", text)
    assert Docker(tmp_path).name(ID) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.sampled_from([b"[" * 100_000, b'{"Name": "\xff"}', b'{"Name": null}', b'{"Name": "/a b"}']))
def test_any_file_is_survived(tmp_path: Path, text: bytes) -> None:
    write(tmp_path, f"/var/lib/docker/containers/{ID}/config.v2.json", text)
    write(tmp_path, "/etc/docker/daemon.json", text)
    assert Docker(tmp_path).name(ID) is None
