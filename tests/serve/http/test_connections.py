"""Which clients count as one."""

import pytest

from podgpu.serve.http.connections import client_network


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8:0:1::5", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ab00::5", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::5", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("not:an:address", "not:an:address"),
    ],
)
def test_addresses_of_one_ipv6_network_are_one_client(host: str, network: str) -> None:
    assert client_network(host) == network


def test_a_peer_without_an_address_has_no_network() -> None:
    assert client_network("") == ""
