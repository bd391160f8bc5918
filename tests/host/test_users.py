"""Names of users."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podgpu.host.users import Users
from tests.host.machine import write, write_users


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
