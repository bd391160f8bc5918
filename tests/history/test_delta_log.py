"""What a text was is what it was: every text that was put in comes out again, whatever was forgotten before it."""

from hypothesis import given
from hypothesis import strategies as st

from podgpu.history.delta_log import DeltaLog

# Few letters, so that texts resemble each other; many pieces, so that some gaps take more than one byte.
TEXTS = st.one_of(
    st.none(),
    st.text("ab,:", max_size=12).map(str.encode),
    st.integers(0, 600).map(lambda number: b",".join(b"%d" % (place == number) for place in range(601))),
)


@given(st.lists(TEXTS, max_size=12), st.integers(1, 4), st.integers(0, 12))
def test_every_text_comes_out_as_it_went_in(texts: list[bytes | None], whole_every: int, forgotten: int) -> None:
    log = DeltaLog(whole_every)
    for at, text in enumerate(texts):
        log.put(float(at), text)
    log.forget(float(forgotten))
    kept = range(min(forgotten, len(texts)), len(texts))
    assert [log.at(at + 0.5) for at in kept] == [texts[at] for at in kept]
    assert log.at(-1.0) is None


def test_a_change_takes_little_room() -> None:
    log, whole = DeltaLog(100), DeltaLog(1)
    for at in range(50):
        text = b",".join(b'"reading %d":%d' % (number, number * at if number == at else 7) for number in range(500))
        log.put(float(at), text)
        whole.put(float(at), text)
    assert log.size - len(text) < (whole.size - len(text)) / 8


def test_what_is_forgotten_takes_no_room() -> None:
    log = DeltaLog(5)
    sizes = []
    for at in range(200):
        log.put(float(at), b",".join(b"%d" % (at * number % 97) for number in range(100)))
        log.forget(at - 20.0)
        sizes.append(log.size)
    assert max(sizes[100:]) <= max(sizes[50:100]) * 1.2
    assert next(at for at, _ in log.texts()) >= 199 - 20 - 6
