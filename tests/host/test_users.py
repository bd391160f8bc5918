"""Names of users."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.host.owner_names import Users
from tests.host.machine import write, write_subordinates, write_users


def test_a_user_has_his_name_or_else_his_number(tmp_path: Path) -> None:
    users = Users(tmp_path)
    assert users.name(1000) == "1000"
    write_users(tmp_path, root=0, alice=1000)
    assert [users.name(number) for number in (0, 1000, 1001)] == ["root", "alice", "1001"]


def test_of_two_names_for_one_number_the_first_counts(tmp_path: Path) -> None:
    write_users(tmp_path, root=0, toor=0)
    assert Users(tmp_path).name(0) == "root"


def test_a_name_that_looks_like_another_users_number_is_not_believed(tmp_path: Path) -> None:
    write(
        tmp_path,
        "/etc/passwd",
        "1001:x:1000:\n#a:x:1:\nb c:x:2:\n+::::::\nshort:x\n:x:3:\nd:x:-4:\ne:x:\u0665:\n",
    )
    users = Users(tmp_path)
    assert [users.name(number) for number in (1000, 1, 2, 3, 4, 5)] == ["1000", "1", "2", "3", "4", "5"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary())
def test_any_list_of_users_is_survived(tmp_path: Path, text: bytes) -> None:
    write(tmp_path, "/etc/passwd", text)
    assert Users(tmp_path).name(4_294_967_295)


def test_a_number_set_aside_for_the_containers_of_a_user_is_that_user(tmp_path: Path) -> None:
    users = Users(tmp_path)
    assert users.name(100_000) == "100000"
    write_users(tmp_path, root=0, alice=1000, bob=1001, carol=165_600)
    write_subordinates(tmp_path, "alice:100000:65536", "1001:165536:65536", "dave:300000:10", "4711:400000:10")
    wanted = {
        99_999: "99999",
        100_000: "alice",
        165_535: "alice",
        165_536: "bob",
        165_600: "carol",
        231_072: "231072",
        300_009: "dave",
        300_010: "300010",
        400_000: "4711",
    }
    assert {number: users.name(number) for number in wanted} == wanted


def test_a_number_set_aside_for_two_is_nobodys(tmp_path: Path) -> None:
    write_subordinates(
        tmp_path, "alice:100000:1000", "bob:100500:10", "bob:200000:10", "carol:100900:9000", "bob:200005:10"
    )
    users = Users(tmp_path)
    numbers = (100_000, 100_505, 105_000, 200_000, 200_012)
    assert [users.name(number) for number in numbers] == ["100000", "100505", "105000", "bob", "bob"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary() | st.from_regex(r"([a-z0-9]{1,3}:[0-9]{1,4}:[0-9]{1,4}\n){0,6}").map(str.encode))
def test_any_list_of_subordinates_is_survived(tmp_path: Path, text: bytes) -> None:
    write(tmp_path, "/etc/subuid", text)
    users = Users(tmp_path)
    assert all(users.name(number) for number in (0, 1, 500, 4_294_967_295))
    assert users.name(0) == "0"  # nobody is given root
