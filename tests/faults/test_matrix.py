"""Every fault in every phase of an agent's life: what must hold does, whatever breaks.

contract.py has what is checked, plays/ has the faults. By default a few cells are played. `make matrix` plays all.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.catalogue import Cell, cells
from tests.faults.node import broken_node
from tests.faults.phases import PHASES
from tests.faults.table import RECOVERED


@pytest.mark.parametrize("cell", cells(), ids=str)
def test_a_fault_in_a_phase(
    cell: Cell, library: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with broken_node(tmp_path, library) as node:
        try:
            record_property(RECOVERED, PHASES[cell.phase](cell.play, node))
        except Exception as error:
            error.add_note(f"the agent's log:\n{node.read_log()}")
            raise
