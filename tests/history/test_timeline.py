"""The timeline: steps of the same length, with what happened in each."""

from podgpu.history.timeline import MOST_NAMESPACES, timeline
from podgpu.model import Moment, XidMark

XID = XidMark(at=104.0, code=79, node="gpu-1", gpu=2, uuid="GPU-2", severity="critical")


def moment(at: float, **namespaces: float) -> Moment:
    return Moment(
        at=at,
        gpus=8,
        seen_gpus=8,
        busy_gpus=sum(namespaces.values()) + 0.5,
        namespaces=namespaces,
        xids=(XID,),
    )


def test_a_step_has_the_mean_of_its_moments() -> None:
    found = timeline([moment(100.0, a=1.0), moment(105.0, a=2.0, b=1.0), moment(110.0, b=4.0)], 100.0, 119.0, 10.0)
    assert (found["from"], found["to"], found["namespaces"]) == (100.0, 120.0, ["a", "b"])
    first, second = found["steps"]
    assert first == {
        "at": 100.0,
        "gpus": 8,
        "seen_gpus": 8,
        "busy_gpus": 2.5,
        "namespaces": {"a": 1.5, "b": 0.5},
    }
    assert second["namespaces"] == {"b": 4.0}


def test_of_a_step_without_moments_nothing_is_said() -> None:
    assert timeline([moment(100.0)], 90.0, 100.0, 10.0)["steps"][0] == {"at": 90.0}


def test_what_was_seen_without_use_is_not_said_to_be_unused() -> None:
    lost = Moment(at=100.0, gpus=8, seen_gpus=0)
    assert timeline([lost], 100.0, 100.0, 10.0)["steps"] == [{"at": 100.0, "gpus": 8, "seen_gpus": 0}]


def test_an_xid_is_listed_once_and_at_its_own_time() -> None:
    found = timeline([moment(105.0), moment(110.0), moment(115.0)], 100.0, 119.0, 10.0)
    assert found["xids"] == [
        {"at": 104.0, "code": 79, "node": "gpu-1", "gpu": 2, "uuid": "GPU-2", "severity": "critical"}
    ]


def test_many_namespaces_are_added_up() -> None:
    many = {f"team-{number:02}": 0.1 * (number + 1) for number in range(MOST_NAMESPACES + 2)}
    found = timeline([moment(100.0, **many)], 100.0, 100.0, 10.0)
    (step,) = found["steps"]
    assert found["namespaces"] == sorted(many)[2:]
    assert step["other_gpus"] == 0.3


def test_throttling_is_the_most_of_a_step() -> None:
    moments = [Moment(at=100.0 + number, gpus=8, seen_gpus=8, throttled_gpus=number % 3) for number in range(4)]
    assert timeline(moments, 100.0, 103.0, 10.0)["steps"][0]["throttled_gpus"] == 2
