"""Which names of containers are believed, and for how long."""

import pytest

from podgpu.host import owner_names
from podgpu.host.owner_names import BELIEVED_SECONDS, ContainerCache, plausible_name


@pytest.mark.parametrize("name", ["web", "a", "stack-web-1", "k8s_x.Y-1", "0" * 128, "473a28bd49f", "473a28bd49fg"])
def test_a_name_that_docker_could_give_is_believed(name: str) -> None:
    assert plausible_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "-web", "we b", "web/x", "../x", "web\n", "wéb", "web\x1b[31m", "0" * 129, "473a28bd49fc"]
)
def test_a_name_that_docker_could_not_give_or_that_looks_like_an_id_is_not(name: str) -> None:
    assert plausible_name(name) is None


class Clocked:
    """Names read from a dictionary, at a time that the test sets."""

    def __init__(self, **known: str) -> None:
        self.now = 0.0
        self.known = known
        self.asked: list[str] = []
        self.names = ContainerCache(self._read, lambda: self.now)

    def _read(self, container_id: str) -> str | None:
        self.asked.append(container_id)
        return self.known.get(container_id)


def test_a_name_is_read_once_and_again_when_it_is_old() -> None:
    clocked = Clocked(a="web")
    assert [clocked.names.get("a"), clocked.names.get("a")] == ["web", "web"]
    assert clocked.asked == ["a"]
    clocked.known["a"], clocked.now = "renamed", BELIEVED_SECONDS
    assert clocked.names.get("a") == "renamed"


def test_that_there_is_no_name_is_believed_for_a_while_only() -> None:
    clocked = Clocked()
    assert [clocked.names.get("a"), clocked.names.get("a")] == [None, None]
    assert clocked.asked == ["a"]
    clocked.known["a"], clocked.now = "web", BELIEVED_SECONDS
    assert clocked.names.get("a") == "web"


def test_a_container_that_is_removed_keeps_its_name() -> None:
    clocked = Clocked(a="web")
    clocked.names.get("a")
    del clocked.known["a"]
    clocked.now = 10 * BELIEVED_SECONDS
    assert clocked.names.get("a") == "web"


def test_no_more_ids_than_a_bound_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_names, "MOST_KNOWN", 2)
    clocked = Clocked(a="web")
    for container_id in ("a", "b", "c", "b", "c", "a"):
        clocked.names.get(container_id)
    assert clocked.asked == ["a", "b", "c", "a"]
