from pathlib import Path

import pytest

from tools.docs import PAGES, main

PAGE = (("docs/page.md", lambda: "fresh\n"),)


def test_writing_makes_the_page_and_its_folder(tmp_path: Path) -> None:
    assert main([], tmp_path, PAGE) == 0
    assert (tmp_path / "docs/page.md").read_text() == "fresh\n"
    assert main(["--check"], tmp_path, PAGE) == 0


def test_a_stale_page_is_named_with_its_cure_and_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([], tmp_path, PAGE)
    (tmp_path / "docs/page.md").write_text("old\n")
    assert main(["--check"], tmp_path, PAGE) == 1
    assert capsys.readouterr().err == "docs/page.md is stale: run make docs\n"
    assert (tmp_path / "docs/page.md").read_text() == "old\n"


def test_a_missing_page_is_stale(tmp_path: Path) -> None:
    assert main(["--check"], tmp_path, PAGE) == 1


def test_every_page_lies_in_the_docs_once() -> None:
    paths = [path for path, _ in PAGES]
    assert len(set(paths)) == len(paths)
    assert all(path.startswith("docs/") and path.endswith(".md") for path in paths)
