"""E: what goes wrong with processes and pods."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
