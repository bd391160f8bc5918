"""F: names and values that a page cannot hold as they are."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
