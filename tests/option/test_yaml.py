"""YAML that would grow while it is read, and YAML that would be read for ever."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from podgpu.config.precedence import load
from podgpu.config.sections import prices
from podgpu.errors import UserError
from podgpu.kube.api.kubeconfig import account
from podgpu.option.file import yaml_document
from podgpu.serve.guard import web_config

# 2⁴⁰ words in 40 lines.
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 41))
READERS: dict[str, Callable[[Path], object]] = {
    "any": lambda path: yaml_document(path, "check it"),
    "--config.file": lambda path: load({"config_file": [str(path)]}, {}),
    "--price": lambda path: prices(str(path)),
    "--web.config.file": web_config.read,
    "--kube.kubeconfig": account,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("text", [BOMB, "a: &a [1]\nb: *a\n", "a: &a\n  b: *a\n", "a: &a {c: 1}\n? *a\n: 1\n"])
def test_an_alias_is_refused_and_the_line_is_named(tmp_path: Path, reader: Callable[[Path], object], text: str) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"line 2: .*alias.*; write out what it stands for"):
        reader(path)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("text", ['a: b\nprice: "a\\0b"\n', 'a: b\n"\\x00": [c]\n'])
def test_a_nul_is_refused_and_the_line_is_named(tmp_path: Path, reader: Callable[[Path], object], text: str) -> None:
    """No path, password or name may hold one."""
    path = tmp_path / "some.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"line 2: a value must not contain NUL|YAML; check --kube\.kubeconfig"):
        reader(path)


def test_many_keys_are_compared_once(tmp_path: Path) -> None:
    """By comparing each with each, a file would take hours."""
    path = tmp_path / "some.yaml"
    path.write_text("".join(f"k{n}: 1\n" for n in range(4000)) + "k7: 2\n")
    began = time.process_time()
    with pytest.raises(UserError, match="line 4001: 'k7' appears twice"):
        yaml_document(path, "check it")
    assert time.process_time() - began < 10


def test_a_key_may_be_twice_neither_in_a_list_nor_as_a_list(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text("a:\n- b: 1\n  b: 2\n")
    with pytest.raises(UserError, match="line 3: 'b' appears twice"):
        yaml_document(path, "check it")
    path.write_text("? [a]\n: 1\n? {b: 1}\n: 2\n")
    with pytest.raises(UserError, match="not valid YAML"):
        yaml_document(path, "check it")
