"""Whether the books of a card add up."""

from podgpu.model import Booking, Card, Rest


def adds_up(card: Card) -> bool:
    """Whether tenants, those that ended and the rest are the card, exactly. True where nothing is booked yet."""
    balance = card.balance
    if balance is None:
        return True
    rows: list[Booking | Rest] = [tenant.booking for tenant in (*card.tenants, *card.ended)]
    rows += card.rest
    memory = sum(row.memory_bytes or 0 for row in rows)
    return (
        balance.memory_bytes in (None, memory)
        and sum(row.busy_us for row in rows) == balance.busy_us
        and sum(row.energy_mj for row in rows) == balance.energy_mj
    )
