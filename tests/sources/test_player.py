"""Which of the recorded moments is due."""

import pytest

from podgpu.sources.player import Player

TIMES = (100.0, 105.0, 115.0)


def document(number: int) -> bytes:
    return f"moment {number}".encode()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_moments_come_when_they_came_then(clock: Clock) -> None:
    player = Player(TIMES, document, clock=clock)
    assert (player.number, player.seconds_to_next) == (0, 5.0)
    clock.now += 5
    assert (player.number, player.seconds_to_next) == (1, 10.0)
    clock.now += 100
    assert player.is_over and player.seconds_to_next == float("inf")


def test_a_pause_and_another_speed_go_on_from_where_it_is(clock: Clock) -> None:
    player = Player(TIMES, document, speed=2.0, clock=clock)
    clock.now += 1
    player.pause()
    clock.now += 60
    assert (player.number, player.seconds_to_next) == (0, float("inf"))
    player.pause()
    assert player.seconds_to_next == 1.5
    player.go_faster(1)
    assert player.speed == 5.0 and player.seconds_to_next == pytest.approx(0.6)
    player.go_faster(-100)
    assert player.speed == 0.1


def test_a_step_pauses_and_stays_within_the_recording(clock: Clock) -> None:
    player = Player(TIMES, document, clock=clock)
    player.step(1)
    assert (player.number, player.is_paused) == (1, True)
    clock.now += 60
    player.step(-1)
    assert player.number == 0
    player.step(-1)
    assert player.number == 0
    player.step(100)
    assert player.number == len(TIMES) - 1


def test_a_jump_goes_to_the_moment_that_was_the_newest_then(clock: Clock) -> None:
    player = Player((100.0, 130.0, 165.0, 170.0), document, clock=clock)
    player.jump(60.0)
    assert (player.number, player.is_paused) == (1, True)
    player.jump(60.0)
    assert player.number == 3
    player.jump(-60.0)
    assert player.number == 0
    player.jump(-60.0)
    assert player.number == 0


def test_a_loop_begins_again(clock: Clock) -> None:
    player = Player(TIMES, document, is_loop=True, clock=clock)
    clock.now += 25 + 6
    assert (player.number, player.is_over) == (1, False)
