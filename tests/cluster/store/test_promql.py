import pytest

from podgpu.cluster.store.client import Store
from podgpu.cluster.store.options import StoreOptions, matchers, store_address
from podgpu.cluster.store.response import any_of, own_labels
from podgpu.errors import UserError


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('cluster="prod"', 'cluster="prod"'),
        ('{cluster="prod", job=~"podgpu|agent"}', 'cluster="prod", job=~"podgpu|agent"'),
        (r'name!="a\"b"', r'name!="a\"b"'),
    ],
)
def test_matchers_are_as_promql_writes_them(text: str, taken: str) -> None:
    assert matchers(text) == taken


@pytest.mark.parametrize("text", ["prod", "cluster=prod", 'a="b"} or {c="d"', '"x"', 'a="b",,c="d"', 'a="b'])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="not a list of label matchers"):
        matchers(text)


def test_the_users_choice_is_part_of_every_question() -> None:
    store = Store(StoreOptions(url="http://127.0.0.1:9090", selector='cluster="prod"'))
    assert store.select("up", 'node="a"') == 'up{cluster="prod",node="a"}'
    assert Store(StoreOptions(url="http://127.0.0.1:9090")).select("up") == "up"


def test_names_are_taken_as_they_are() -> None:
    assert any_of("node", ["a.b", "c-1"]) == r'node=~"a\\.b|c-1"'


AGENT = {"namespace": "podgpu", "pod": "podgpu-x", "container": "agent"}


@pytest.mark.parametrize(
    ("exported", "own"),
    [
        ({}, AGENT),
        (
            {"exported_namespace": "ml", "exported_pod": "train", "exported_container": "main"},
            {"namespace": "ml", "pod": "train", "container": "main"},
        ),
        # A scrape adds its own labels where those of a container outside Kubernetes are empty.
        ({"exported_container": "alice"}, {"namespace": "", "pod": "", "container": "alice"}),
    ],
)
def test_what_a_scrape_without_honor_labels_renames_is_undone(exported: dict[str, str], own: dict[str, str]) -> None:
    found = own_labels({**AGENT, **exported})
    assert {name: found[name] for name in AGENT} == own


@pytest.mark.parametrize("url", ["", "prometheus:9090", "ftp://x", "http://", "http://x:1?y=2", "http://x:99999"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="is not the address of a store"):
        store_address(url)


def test_an_address_holds_no_login() -> None:
    with pytest.raises(UserError, match=r"--prometheus\.password-file"):
        store_address("https://user:word@prometheus")


def test_an_address_may_have_a_path() -> None:
    assert store_address("https://mimir/prometheus/") == "https://mimir/prometheus"
    assert store_address("http://127.0.0.1:9090/api/v1/") == "http://127.0.0.1:9090"
