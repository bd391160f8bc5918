from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podgpu.serve.server import changes

SCALARS = st.integers(0, 3) | st.text("ab", max_size=2)
DOCUMENTS = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
        max_leaves=8,
    ),
    max_size=3,
)


def laid_upon(target: Any, patch: Any) -> Any:
    """What a reader does with a change, as docs/api.md has it."""
    if not isinstance(patch, dict):
        return patch
    if isinstance(target, list):
        return [laid_upon(item, patch[str(n)]) if str(n) in patch else item for n, item in enumerate(target)]
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = laid_upon(result.get(key), value)
    return result


@given(DOCUMENTS, DOCUMENTS)
def test_a_change_makes_one_document_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    # In our documents nothing that is a list ever becomes an object: only there a patch would be read wrongly.
    if not turns_list_into_object(before, after):
        assert laid_upon(before, changes(before, after)) == after


def turns_list_into_object(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, dict):
        return True
    if isinstance(old, dict) and isinstance(new, dict):
        return any(turns_list_into_object(old[key], new[key]) for key in old.keys() & new.keys())
    if isinstance(old, list) and isinstance(new, list):
        return any(turns_list_into_object(*pair) for pair in zip(old, new, strict=False))
    return False


def test_a_change_is_small() -> None:
    before = {"at": 1, "cards": [{"uuid": "a", "watts": 1}, {"uuid": "b", "watts": 2, "fault": "x"}]}
    after = {"at": 2, "cards": [{"uuid": "a", "watts": 1}, {"uuid": "b", "watts": 3}]}
    assert changes(before, after) == {"at": 2, "cards": {"1": {"watts": 3, "fault": None}}}


def test_no_change_is_nothing() -> None:
    assert changes({"a": [1]}, {"a": [1]}) == {}
