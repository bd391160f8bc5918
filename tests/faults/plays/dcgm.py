"""D: what goes wrong with a dcgm-exporter that the numbers come from."""

from tests.faults.play import Play

PLAYS: tuple[Play, ...] = ()
