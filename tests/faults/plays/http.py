"""G: what clients do to the server."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
