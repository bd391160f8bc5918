import pytest

from tests.fakenvml.conftest import library
from tests.faults.node import IS_WHOLE
from tests.faults.table import result, table

__all__ = ["library"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the matrix, if all of it was played."""
    if not IS_WHOLE:
        return
    reports = [
        result(report.nodeid, report.user_properties, is_green=word == "passed")
        for word in ("passed", "failed")
        for report in terminalreporter.stats.get(word, ())
    ]
    terminalreporter.section("faults")
    for line in table(filter(None, reports)):
        terminalreporter.write_line(line)
