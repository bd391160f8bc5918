"""H: what goes wrong with the agent itself, and with the machine under it."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
