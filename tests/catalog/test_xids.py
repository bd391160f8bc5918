"""Every XID is judged, by words that exist."""

from podgpu.catalog.xids import ACTIONS, CAUSES, UNKNOWN, XIDS
from podgpu.model import SEVERITIES


def test_every_xid_is_judged_in_known_words() -> None:
    for xid in (*XIDS.values(), UNKNOWN):
        assert xid.severity in SEVERITIES
        assert xid.cause in CAUSES
        assert xid.action in ACTIONS


def test_what_asks_for_a_drain_is_critical_and_what_asks_for_a_restart_is_not() -> None:
    assert {xid.severity for xid in XIDS.values() if xid.action in ("reset", "reboot", "inspect")} == {"critical"}
    assert "critical" not in {xid.severity for xid in XIDS.values() if xid.action in ("restart", "nothing", "watch")}


def test_a_program_is_never_blamed_for_more_than_information() -> None:
    assert {xid.severity for xid in XIDS.values() if xid.cause == "application"} == {"info"}
