"""Says whether what a client has sent so far is worth a connection of its own."""

_TLS_HANDSHAKE = 0x16
_TLS_HEAD = 5


def are_whole(data: bytes, most: int, *, encrypted: bool) -> bool:
    """Whether this is a request's whole head or a whole greeting of TLS, or will never be one.

    Nothing is checked here. What is wrong gets its answer from the connection.
    """
    if len(data) >= most:
        return True
    if encrypted:
        return data[0] != _TLS_HANDSHAKE or (
            len(data) >= _TLS_HEAD and len(data) >= _TLS_HEAD + int.from_bytes(data[3:_TLS_HEAD], "big")
        )
    return not data[:1].isalpha() or b"\n\r\n" in data or b"\n\n" in data
