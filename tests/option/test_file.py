import os
from pathlib import Path

import pytest

from podgpu.config.values import RATIO_FORM, ratios
from podgpu.errors import UserError
from podgpu.kube.api.kubeconfig import _document
from podgpu.option.file import existing_file, start_of, text_file, yaml_document
from podgpu.serve.guard import web_config

READERS = {
    "ratio": text_file(ratios, kibibytes=64, advice=RATIO_FORM),
    "config": lambda path: yaml_document(Path(path), "check it"),
    "web config": lambda path: web_config.read(Path(path)),
    "kubeconfig": lambda path: _document(Path(path)),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_pipe_without_a_writer_is_refused_at_once(reader: object, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert callable(reader)
    with pytest.raises(UserError, match="not a regular file"):
        reader(str(tmp_path / "pipe"))


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_device_without_an_end_is_refused(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(UserError, match="not a regular file"):
        reader("/dev/zero")


def test_a_file_is_read_up_to_its_bound_and_through_links(tmp_path: Path) -> None:
    """Kubernetes puts a token behind two links."""
    (tmp_path / "token").write_bytes(b"x" * 100)
    (tmp_path / "link").symlink_to("token")
    assert start_of(tmp_path / "link", 10) == b"x" * 10


def test_a_token_in_place_of_the_path_of_its_file_is_refused() -> None:
    """The kernel has no name that long: asking for it is an error of its own."""
    with pytest.raises(UserError, match=r"cannot read 'eyJ.*': File name too long; give the path of a file") as caught:
        existing_file("eyJhbGci" * 100)
    assert len(str(caught.value)) < 200
