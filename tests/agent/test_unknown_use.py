"""What the books count apart: time of which nobody knows whether it was used, and what is booked of whole minutes."""

from msgspec.structs import replace

from podgpu.agent.books import NodeBooks
from podgpu.ledger.cycle import CycleBooking
from tests.agent.test_books import bookings, rank, sheet, tenants, works


def test_time_in_which_nobody_knows_what_a_holder_did_is_counted_apart() -> None:
    """One works, one certainly has no process, and of one nobody knows."""
    at_work = CycleBooking(busy_us=10, sm_ratio=0.5, running=1, allocated_us=30)
    unseen = CycleBooking(running=1, allocated_us=30)
    books = NodeBooks()
    cycle, interval = sheet({rank("a"): at_work, rank("b"): unseen, rank("c"): CycleBooking(allocated_us=30)})
    books.post([(replace(cycle, is_watched=True), interval)], 0.0, 0.0)
    unknown = {tenant.container.pod_uid: tenant.booking.unmeasured_us for tenant in tenants(books)}
    assert unknown == {"a": 0, "b": 30, "c": 0}
    books.post([(cycle, interval)], 1.0, 0.0)
    unknown = {tenant.container.pod_uid: tenant.booking.unmeasured_us for tenant in tenants(books)}
    assert unknown == {"a": 0, "b": 60, "c": 30}, "not all processes are listed"


def test_what_is_booked_of_a_minute_is_settled_when_the_minute_is_over() -> None:
    books = NodeBooks()
    settled = []
    for second in range(4):
        books.post([works(rank("a"))], second, 0.0)
        (booking,) = bookings(books)
        settled.append((booking.busy_us, booking.settled_busy_us))
    assert settled == [(10, 0), (20, 0), (30, 30), (40, 30)]
