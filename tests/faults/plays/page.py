"""F: a page that grows, or contradicts itself."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
