"""What of a request's head is understood, and what is refused."""

import pytest

from podgpu.serve.http.request import Limits, Request, RequestError, parse_request

GET = b"GET /metrics HTTP/1.1\r\nHost: test\r\n"


def read(data: bytes, limits: Limits | None = None) -> Request:
    parsed = parse_request(data, limits or Limits(), "10.0.0.1")
    assert parsed is not None
    request, rest = parsed
    assert rest == b""
    return request


def status(data: bytes, limits: Limits | None = None) -> int:
    with pytest.raises(RequestError) as caught:
        read(data, limits)
    return caught.value.status


def test_a_request_is_read() -> None:
    request = read(
        b"POST /-/release?seconds=5&seconds=6&note=a+b%21&empty= HTTP/1.1\r\n"
        b"Host: test\r\nAccept: text/plain\r\nACCEPT:  */*;q=0.1 \t\r\nX-Empty:\r\n\r\n"
    )
    query = {"seconds": "5", "note": "a b!", "empty": ""}
    headers = {"host": "test", "accept": "text/plain, */*;q=0.1", "x-empty": ""}
    pairs = (("seconds", "5"), ("seconds", "6"), ("note", "a b!"), ("empty", ""))
    assert request == Request("POST", "/-/release", query, headers, "10.0.0.1", pairs=pairs)
    assert request.every("seconds") == ["5", "6"]
    assert request.keeps_alive


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/%6detrics/%e2%82%ac", "/metrics/€", {}),
        (b"//metrics", "//metrics", {}),
        (b"/a/../b", "/a/../b", {}),
        (b"http://node:19400/metrics?a=1", "/metrics", {"a": "1"}),
        (b"http://node", "/", {}),
        (b"*", "*", {}),
        (b"/?%ff&=&b&c=%zz", "/", {"\ufffd": "", "": "", "b": "", "c": "%zz"}),
    ],
)
def test_a_target_is_a_path_and_a_query(target: bytes, path: str, query: dict[str, str]) -> None:
    request = read(b"GET " + target + b" HTTP/1.1\r\nHost: test\r\n\r\n")
    assert (request.path, request.query) == (path, query)


def test_what_follows_a_head_is_left() -> None:
    assert parse_request(GET[:10], Limits(), "") is None
    parsed = parse_request(GET + b"\r\nGET /next", Limits(), "")
    assert parsed is not None
    assert (parsed[0].path, parsed[1]) == ("/metrics", b"GET /next")


def test_empty_lines_before_a_request_are_skipped() -> None:
    assert read(b"\r\n\r\n" + GET + b"\r\n").path == "/metrics"


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: x-other, Close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", True),
    ],
)
def test_the_client_says_whether_it_will_ask_again(version: bytes, connection: bytes, keeps: bool) -> None:
    request = read(b"GET / HTTP/" + version + b"\r\nHost: test\r\n" + connection + b"\r\n")
    assert request.keeps_alive is keeps


@pytest.mark.parametrize(
    "offer",
    [
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"Expect: 100-continue\r\n",
    ],
)
def test_an_offer_is_declined_by_a_plain_answer(offer: bytes) -> None:
    assert read(GET + offer + b"\r\n").path == "/metrics"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /metrics HTTP/1.1\r\n\r\n",  # no host
        GET + b"Host: other\r\n\r\n",
        GET + b"X-Folded: a\r\n b\r\n\r\n",
        GET + b"X-Bare: a\nX-Next: b\r\n\r\n",
        GET + b"X-Bare: a\rb\r\n\r\n",
        GET + b"X-Null: \0\r\n\r\n",
        GET + b"X-Space : a\r\n\r\n",
        GET + b": nameless\r\n\r\n",
        GET + b"no colon\r\n\r\n",
        b"GET /metrics HTTP/1.1\n\n",
        b"GET /metrics HTTP/0.9\r\nHost: test\r\n\r\n",
        b"GET /metrics HTTP/1.2\r\nHost: test\r\n\r\n",
        b"GET /metrics HTTP/2.0\r\nHost: test\r\n\r\n",
        b"get /metrics HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /metrics#top HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /m\xc3\xa9trics HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET /two words HTTP/1.1\r\nHost: test\r\n\r\n",
        b"GET metrics HTTP/1.1\r\nHost: test\r\n\r\n",
        b"CONNECT test:443 HTTP/1.1\r\nHost: test\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(head: bytes) -> None:
    assert status(head) == 400


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 0\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 5\r\n",
        b"Content-Length: 0, 0\r\n",
        b"Content-Length: +1\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length:\r\n",
        b"Content-Length: 99999999999999999999999999\r\n",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
def test_a_doubtful_length_is_refused(fields: bytes) -> None:
    assert status(GET + fields + b"\r\n") == 400


@pytest.mark.parametrize("field", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_is_refused(field: bytes) -> None:
    assert status(GET + field + b"\r\n") == 413
    assert status(GET + b"Expect: 100-continue\r\n" + field + b"\r\n") == 413


def test_another_expectation_is_refused() -> None:
    assert status(GET + b"Expect: miracles\r\n\r\n") == 417


def test_a_head_has_just_so_many_lines_and_bytes() -> None:
    limits = Limits(head_bytes=1000, line_bytes=500, header_count=10)
    assert read(GET + b"X: y\r\n" * 9 + b"\r\n", limits)
    assert status(GET + b"X: y\r\n" * 10 + b"\r\n", limits) == 431
    whole = GET + b"\r\n"
    full = b"X: " + b"x" * (498 - 3) + b"\r\n"
    rest = 1000 - len(whole) - len(full)
    assert read(GET + full + b"Y: " + b"y" * (rest - 5) + b"\r\n\r\n", limits)
    assert status(GET + full + b"Y: " + b"y" * (rest - 4) + b"\r\n\r\n", limits) == 431
    assert status(GET + b"X: " + b"x" * (499 - 3) + b"\r\n\r\n", limits) == 400


def test_a_line_without_end_is_refused_before_it_ends() -> None:
    limits = Limits(line_bytes=100)
    assert parse_request(b"GET /" + b"x" * 90, limits, "") is None
    with pytest.raises(RequestError):
        parse_request(b"GET /" + b"x" * 100, limits, "")


def test_what_is_not_http_is_refused_before_it_ends() -> None:
    with pytest.raises(RequestError):
        parse_request(b"GET /metrics SMTP/1.1\r\n", Limits(), "")
