import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.kube.api import LineSplitter
from podgpu.kube.object_watch import PodCache
from podgpu.model import Pod
from tests.fakeapi.recorded import NODE, changed, listed, pod, watch_lines
from tests.fakeapi.server import bookmark, error, event

A, B = "04a42512-da73-45a0-91d1-4b3469bce212", "eeffc188-aff2-4611-b421-bbb35128be48"
WATCH = watch_lines()
LIST = listed()
RECORDED_UIDS = {item["metadata"]["uid"] for item in LIST["items"]} | {
    json.loads(line)["object"]["metadata"].get("uid") for line in WATCH
}
# Nothing in here can be a UID, a name or a version.
JUNK: list[Any] = [None, True, -1, 1e308, "", "\n", "../x", "\ud800", [], [[]], {}, {"": None}]


def cache_of(*items: dict[str, Any], version: int = 10) -> PodCache:
    cache = PodCache(NODE)
    known = [cache.read(json.dumps(item).encode()) for item in items]
    cache.replace([each for each in known if each], str(version))
    return cache


def recorded_cache() -> PodCache:
    return cache_of(*LIST["items"], version=int(LIST["metadata"]["resourceVersion"]))


def uids(cache: PodCache) -> list[str]:
    return [each.uid for each in cache.items()]


def end_of_watch() -> tuple[Pod, ...]:
    cache = recorded_cache()
    for line in WATCH:
        assert cache.apply(line) is None
    return cache.items()


def test_the_same_name_with_another_uid_is_another_pod() -> None:
    cache = cache_of(pod("rank-0", A, 5))
    cache.apply(event("ADDED", pod("rank-0", B, 11)))
    assert uids(cache) == [A, B]
    cache.apply(event("DELETED", pod("rank-0", A, 12)))
    assert uids(cache) == [B]


def test_late_news_neither_turns_back_time_nor_wakes_the_dead() -> None:
    cache = cache_of(pod("p", A, 5))
    cache.apply(event("MODIFIED", {**pod("p", A, 12), "status": {"phase": "Failed"}}))
    cache.apply(event("MODIFIED", pod("p", A, 11)))
    assert [each.phase for each in cache.items()] == ["Failed"]
    cache.apply(event("DELETED", pod("p", A, 13)))
    cache.apply(event("MODIFIED", pod("p", A, 12)))
    cache.apply(event("ADDED", changed(pod("p", A), resourceVersion="")))
    assert uids(cache) == []


def test_an_event_of_a_version_that_is_known_is_late() -> None:
    cache = cache_of(pod("p", A, 5))
    cache.apply(event("MODIFIED", {**pod("p", A, 5), "status": {"phase": "Failed"}}))
    assert [each.phase for each in cache.items()] == ["Running"]


def test_without_a_version_the_order_of_arrival_counts() -> None:
    for first, second in ((5, ""), ("", ""), ("", 5)):
        cache = cache_of(changed(pod("p", A), resourceVersion=str(first)))
        cache.apply(
            event(
                "MODIFIED",
                changed({**pod("p", A), "status": {"phase": "Failed"}}, resourceVersion=str(second)),
            )
        )
        assert [each.phase for each in cache.items()] == ["Failed"]


def test_a_deletion_seen_first_holds() -> None:
    cache = cache_of()
    cache.apply(event("DELETED", pod("p", A, 20)))
    cache.apply(event("ADDED", pod("p", A, 19)))
    assert uids(cache) == []


def test_a_bookmark_moves_on_and_never_back() -> None:
    cache = cache_of(version=10)
    cache.apply(bookmark(15))
    assert cache.version == "15"
    cache.apply(bookmark(12))
    cache.apply(event("ADDED", pod("p", A, 14)))
    assert cache.version == "15"
    assert cache.is_old("14") and not cache.is_old("15")


def test_what_makes_no_sense_is_counted_and_skipped() -> None:
    cache = cache_of(pod("p", A, 5))
    lines = [b"", b"{", b"[]", b"null", b'{"type":"ADDED"}', event("SURPRISE", pod("q", B, 11))]
    lines += [event("ADDED", None), event("ADDED", {"metadata": {"name": "q"}}), event("BOOKMARK", 7)]
    lines += [b'{"type":"ADDED","object":' + b"[" * 100_000, event("ERROR", [])]
    for line in lines:
        assert cache.apply(line) is None
    assert uids(cache) == [A]
    assert cache.errors == {"garbage": len(lines)}


def test_a_pod_of_another_node_is_not_ours() -> None:
    cache = cache_of(pod("p", A, 5))
    cache.apply(event("ADDED", {**pod("q", B, 11), "spec": {"nodeName": "another"}}))
    cache.apply(event("ADDED", {**pod("q", B, 12), "spec": {}}))
    assert uids(cache) == [A]


def test_an_object_beyond_the_limit_is_counted_and_skipped() -> None:
    cache = cache_of(pod("p", A, 5))
    cache.apply(event("ADDED", changed(pod("q", B, 11), annotations={"a": "x" * (16 << 20)})))
    assert uids(cache) == [A]
    assert cache.errors == {"too_large": 1}


def test_an_error_event_is_handed_on() -> None:
    status = cache_of().apply(error(410, "too old"))
    assert status and status.fault().reason == "gone"


def _places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in _places(each, (*path, key)))]


def _mutate(line: bytes, place: tuple[Any, ...], junk: object, *, remove: bool) -> bytes:
    whole = {"event": json.loads(line)}
    *parents, last = ("event", *place)
    holder: Any = whole
    for key in parents:
        holder = holder[key]
    if remove:
        del holder[last]
    else:
        holder[last] = junk
    return json.dumps(whole.get("event")).encode()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(WATCH), st.data(), st.sampled_from(JUNK), st.booleans())
def test_a_broken_event_never_raises_and_never_invents_a_pod(
    line: bytes, data: st.DataObject, junk: object, remove: bool
) -> None:
    # Half of the blows go to the parts that are read.
    places = _places(json.loads(line))
    read = [p for p in places if "managedFields" not in p and p[:2] != ("object", "spec")]
    cache = recorded_cache()
    cache.apply(
        _mutate(line, data.draw(st.sampled_from(data.draw(st.sampled_from([places, read])))), junk, remove=remove)
    )
    assert set(uids(cache)) <= RECORDED_UIDS
    assert {(p.namespace, p.name) for p in cache.items()} <= {
        (item["object"]["metadata"].get("namespace"), item["object"]["metadata"].get("name"))
        for item in map(json.loads, WATCH)
    } | {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in LIST["items"]}


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(WATCH), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=8))
def test_flipped_bytes_never_raise(line: bytes, flips: list[tuple[int, int]]) -> None:
    raw = bytearray(line)
    for at, byte in flips:
        raw[at % len(raw)] = byte
    cache = recorded_cache()
    cache.apply(bytes(raw))
    assert len(cache.items()) in (6, 7, 8)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, sum(map(len, WATCH))), max_size=60))
def test_the_recorded_watch_gives_one_result_in_any_chunks(cuts: list[int]) -> None:
    stream = b"".join(WATCH)
    cuts = sorted(cuts)
    cache, lines = recorded_cache(), LineSplitter(2 << 20)
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        for line in lines.feed(stream[begin:end]):
            assert line
            cache.apply(line)
    assert cache.items() == end_of_watch()
    assert not cache.errors


def test_a_book_of_all_nodes_keeps_where_each_pod_runs() -> None:
    cache = PodCache(None)
    known = cache.read(json.dumps(LIST["items"][0]).encode())
    assert known is not None and known.item is not None
    assert known.item.node == NODE
    assert not any(pod.node for pod in recorded_cache().items()), "on one node there is nothing to tell"


def test_the_same_tuple_is_given_until_something_changes() -> None:
    cache = cache_of(pod("p", A, 5), pod("q", B, 6))
    before = cache.items()
    cache.apply(bookmark(20))
    cache.apply(event("MODIFIED", pod("p", A, 21)))
    cache.apply(event("DELETED", pod("r", "75d0eb36-1c6c-4ab9-9b4b-0b1d60aa2ad5", 22)))
    assert cache.version == "22"
    assert cache.items() is before
    again = [cache.read(json.dumps(item).encode()) for item in (pod("q", B, 30), pod("p", A, 30))]
    cache.replace([each for each in again if each], "30")
    assert cache.items() is before
    cache.apply(event("MODIFIED", {**pod("p", A, 31), "status": {"phase": "Failed"}}))
    assert [each.phase for each in cache.items()] == ["Failed", "Running"]


def test_an_event_that_changes_nothing_still_moves_the_pod_on() -> None:
    """What is older than it is late, though the pod looks the same as before."""
    cache = cache_of(pod("p", A, 5))
    cache.apply(event("MODIFIED", pod("p", A, 12)))
    cache.apply(event("MODIFIED", {**pod("p", A, 11), "status": {"phase": "Failed"}}))
    assert [each.phase for each in cache.items()] == ["Running"]
