"""The kubelet lists names. Where a UID becomes known later, the books go on."""

from podgpu.agent.books import NodeBooks
from tests.agent.stage import check_card
from tests.agent.test_books import cards, rank, works


def test_a_pod_whose_uid_becomes_known_has_not_ended() -> None:
    books = NodeBooks()
    books.post([works(rank(""))], 1.0, 1.0)
    for now in (2.0, 3.0, 4.0):
        books.post([works(rank("u"))], now, now)
        (card,) = cards(books)
        assert [tenant.container.pod_uid for tenant in card.tenants] == ["u"]
        assert card.ended == ()
        assert card.balance is not None
        check_card(card, card.balance)
    assert card.tenants[0].booking.energy_mj == 80
    assert card.tenants[0].booking.band is not None


def test_where_two_pods_have_the_name_it_is_not_known_whose_the_totals_without_a_uid_are() -> None:
    books = NodeBooks()
    books.post([works(rank("old"))], 1.0, 1.0)
    books.post([works(rank(""))], 2.0, 2.0)
    books.post([works(rank("new"))], 3.0, 3.0)
    (card,) = cards(books)
    assert [tenant.container.pod_uid for tenant in card.tenants] == ["new"]
    assert {tenant.container.pod_uid for tenant in card.ended} == {"", "old"}
