from pathlib import Path

import pytest

from tools.mutants import PACKAGE, QUICK, main, mutants, suites

LIMIT = "def is_idle(seconds):\n    return seconds >= 60\n"
LONG_IDLE = "from podgpu.ledger.idle import is_idle\ndef test():\n    assert is_idle(90)\n"


def put(root: Path, path: str, text: str = "") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longest to load
    put(tmp_path, "src/podgpu/__init__.py")
    put(tmp_path, "src/podgpu/ledger/__init__.py")
    put(tmp_path, "src/podgpu/ledger/idle.py", LIMIT)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("x = a < b", ["not a < b", "a <= b"]),
        ("x = a == b", ["not a == b"]),
        ("x = a and b", ["a or b"]),
        ("x = not a", ["a"]),
        ("x = a + b", ["a - b"]),
        ("x += a", ["x -= a"]),
        ("x = min(a, b)", ["max(a, b)"]),
        ("x = a if b else c", ["a", "c"]),
        ("x = 3", ["4", "2"]),
        ("x = 3600", ["7200", "1800"]),
        ("x = 0.5", ["1.0", "0.25"]),
        ("x = 0.0", ["1.0"]),
        ("x = True", ["False"]),
        ("if a:\n    pass", ["if not a:"]),
        ("def f(a: Literal[1] = a) -> int:\n    return a", ["return None"]),
        ("save(a)", ["pass"]),
        ("class A(Struct, frozen=True):\n    '''Text.'''", []),
    ],
)
def test_each_change_is_made_alone(line: str, changes: list[str]) -> None:
    assert [mutant.new for mutant in mutants(line)] == changes


def test_a_mutant_differs_from_the_module_in_one_place() -> None:
    first, *_ = mutants("a = 1\nb = 2\n")
    assert (first.line, first.old, first.new, first.source) == (1, "1", "2", "a = 2\nb = 2")


def test_a_modules_own_tests_run_before_the_quick_ones_of_its_folder_and_of_its_room(tmp_path: Path) -> None:
    put(tmp_path, "tests/cluster/report/test_money.py")
    put(tmp_path, "tests/cluster/report/money/test_coins.py")
    ignored = ["--ignore=tests/cluster/report/test_money.py", "--ignore=tests/cluster/report/money"]
    assert suites(tmp_path, PACKAGE / "cluster/report/money.py") == [
        ["tests/cluster/report/test_money.py", "tests/cluster/report/money"],
        ["tests/cluster/report", *QUICK, *ignored],
        ["tests/cluster", *QUICK, *ignored, "--ignore=tests/cluster/report"],
    ]


def test_what_no_test_notices_is_printed(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tree, "tests/ledger/test_idle.py", LONG_IDLE)
    main(["podgpu.ledger.idle", "--lines", "2-2"], tree)
    assert sorted(capsys.readouterr().out.splitlines()) == [
        "src/podgpu/ledger/idle.py: 2 of 5 mutants survived; 5 can be made",
        "src/podgpu/ledger/idle.py:2: 60 -> 30",
        "src/podgpu/ledger/idle.py:2: seconds >= 60 -> seconds > 60",
    ]
    assert (tree / "src/podgpu/ledger/idle.py").read_text() == LIMIT


def test_a_mutant_that_hangs_is_dead(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.mutants.LEAST_SECONDS", 2.0)
    put(tree, "src/podgpu/ledger/idle.py", "WAITS = 0\nwhile WAITS:\n    pass\n")
    put(tree, "tests/ledger/test_idle.py", "def test():\n    import podgpu.ledger.idle\n")
    main(["ledger/idle.py", "--most", "1"], tree)
    assert "0 of 1 mutants survived" in capsys.readouterr().out


def test_nothing_is_changed_while_the_tests_fail(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tree, "tests/ledger/test_idle.py", "def test():\n    assert False\n")
    with pytest.raises(SystemExit):
        main(["ledger/idle.py"], tree)
    assert "The tests of src/podgpu/ledger/idle.py must pass before it is changed." in capsys.readouterr().err
