from pathlib import Path

import pytest

from tools.shape import FUNCTION_LINES, MODULE_LINES, figures, main, violations


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def function(lines: int) -> str:
    return "def long():\n" + "    pass\n" * (lines - 1)


def test_a_tree_in_shape_passes(tmp_path: Path) -> None:
    put(tmp_path, "src/podgpu/gpu.py", function(FUNCTION_LINES))
    put(tmp_path, "tests/fake.c", "\n" * MODULE_LINES)
    assert main(tmp_path) == 0


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("src/a.py", "\n" * (MODULE_LINES + 1), "src/a.py:401: 401 lines, at most 400: split it"),
        ("tests/fake.c", "\n" * (MODULE_LINES + 1), "tests/fake.c:401: 401 lines, at most 400: split it"),
        (
            "tools/a.py",
            "\n" + function(FUNCTION_LINES + 1),
            "tools/a.py:2: long has 61 lines, at most 60: split it",
        ),
        (
            "bench/a.py",
            "async " + function(FUNCTION_LINES + 1),
            "bench/a.py:1: long has 61 lines, at most 60: split it",
        ),
        ("src/utils.py", "", "src/utils.py:1: the name utils says nothing: name what it holds"),
        ("src/common/gpu.py", "", "src/common:1: the name common says nothing: name what it holds"),
    ],
)
def test_what_is_out_of_shape_is_named(tmp_path: Path, path: str, text: str, complaint: str) -> None:
    put(tmp_path, path, text)
    assert list(violations(tmp_path)) == [complaint]
    assert main(tmp_path) == 1


def test_generated_code_is_free(tmp_path: Path) -> None:
    put(tmp_path, "src/kube/_gen/base.py", "\n" * 9000)
    assert list(violations(tmp_path)) == []


def test_trees_outside_the_four_are_free(tmp_path: Path) -> None:
    put(tmp_path, "deploy/utils.py")
    assert list(violations(tmp_path)) == []


def test_a_name_stands_for_one_class(tmp_path: Path) -> None:
    put(tmp_path, "src/a.py", "class Card: pass\n")
    put(tmp_path, "src/b/c.py", "def f():\n    class _Card: pass\n")
    put(tmp_path, "tests/d.py", "class Card: pass\n")
    assert list(violations(tmp_path)) == [
        "src/b/c.py:2: homonym: src/a.py:1 has a class Card too: name one of them more exactly"
    ]


def test_the_figures_count_modules_folders_lines_and_code(tmp_path: Path) -> None:
    put(tmp_path, "src/podgpu/__init__.py")
    put(tmp_path, "src/podgpu/gpu.py", function(2))
    put(tmp_path, "src/podgpu/log/line.py", '"""What\n\nit holds."""\n\n# why\nA = """one\ntwo\n"""\n')
    assert figures(tmp_path) == "src: 3 modules in 2 folders, 10 lines, 5 of them code"
