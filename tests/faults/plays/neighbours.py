"""K: what other agents do to whoever reads them all."""

from tests.faults.play import Play
from tests.faults.props.neighbours import Neighbours, flapping, hostile, is_named, is_summed_up

MANY = 100
HOSTILE, FLAPPING = Neighbours(hostile, 1), Neighbours(flapping, MANY)

PLAYS = (
    Play(
        id="K1",
        what="another agent sends numbers that cannot be",
        fault=HOSTILE.fault,
        shows=HOSTILE.read_by(lambda page, _: is_named(page)),
        clients=2,
        patience=40.0,  # two processes start
    ),
    Play(
        id="K2",
        what="a hundred other agents come and go",
        fault=FLAPPING.fault,
        shows=FLAPPING.read_by(lambda page, lines: FLAPPING.asked > 4 * MANY and is_summed_up(page, lines, MANY)),
        clients=2,
        patience=60.0,  # each is asked once in a second
    ),
)
