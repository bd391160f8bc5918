import gzip
import zlib

from hypothesis import given
from hypothesis import strategies as st

from podgpu.serve.pages import BodyPart, gzip_stream


@given(st.lists(st.binary(max_size=300)))
def test_parts_make_one_stream_that_every_client_can_decompress(texts: list[bytes]) -> None:
    packed = b"".join(gzip_stream([BodyPart(text) for text in texts]))
    assert gzip.decompress(packed) == b"".join(texts)


def test_a_single_pass_of_a_simple_client_is_enough() -> None:
    """Streams of several members are not: some clients stop after the first."""
    decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
    packed = b"".join(gzip_stream([BodyPart(bytes(100_000)), BodyPart(b"end")]))
    assert decompressor.decompress(packed) == bytes(100_000) + b"end"
    assert decompressor.eof and not decompressor.unused_data


def test_a_part_is_compressed_once() -> None:
    part = BodyPart(b"text")
    assert part.deflated is part.deflated
