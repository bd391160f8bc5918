"""C: what goes wrong with the API server."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
