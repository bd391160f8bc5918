import pytest

from podgpu.config.precedence import load
from podgpu.errors import UserError
from podgpu.sources.dcgm.options import DcgmOptions


def chosen(flags: dict[str, list[str]]) -> DcgmOptions:
    return load(flags, {}).of(DcgmOptions)


def test_the_page_of_an_exporter_has_a_path_that_goes_without_saying() -> None:
    assert chosen({"dcgm_url": ["http://localhost:9400"]}).url == "http://localhost:9400/metrics"
    assert chosen({"dcgm_url": ["https://[fd00::1]:9400/x"]}).url == "https://[fd00::1]:9400/x"
    assert chosen({}).url is None


@pytest.mark.parametrize("text", ["localhost:9400", "ftp://host/", "http://", "http://host:port", "http://[::1"])
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match=r"http://127\.0\.0\.1:9400/metrics"):
        load({"dcgm_url": [text]}, {})


def test_found_pods_have_a_port_and_a_path_that_can_be_given() -> None:
    assert (chosen({}).port, chosen({}).path) == (None, "/metrics")
    given = chosen({"dcgm_port_number": ["9444"], "dcgm_path": ["/gpu/numbers"]})
    assert (given.port, given.path) == (9444, "/gpu/numbers")


@pytest.mark.parametrize("text", ["metrics", "/a?b=c", "/a b", "http://host/metrics", "/a#b"])
def test_what_is_no_path_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="write it like /metrics"):
        load({"dcgm_path": [text]}, {})


@pytest.mark.parametrize(("text", "size"), [("16MiB", 16 << 20), ("65536", 65536), ("64KiB", 65536)])
def test_a_size_is_bytes_or_has_a_unit(text: str, size: int) -> None:
    assert chosen({"dcgm_max_bytes": [text]}).max_bytes == size


@pytest.mark.parametrize("text", ["16MB", "1", "1GiB", "-1", "1.5MiB", "many"])
def test_a_size_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"out of range|is not a size"):
        load({"dcgm_max_bytes": [text]}, {})
