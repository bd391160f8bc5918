"""A map in the web configuration file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from podgpu.errors import UserError
from podgpu.option.spelling import did_you_mean

ADVICE = "check --web.config.file"

T = TypeVar("T")


class Section:
    """Its messages name the file and the key. `known` are the keys it may have; None means any."""

    def __init__(self, path: Path, name: str, values: object, known: Sequence[str] | None) -> None:
        self._path = path
        self._name = name
        if not isinstance(values, dict):
            raise UserError(f"{path}: {name or 'the file'} must hold keys and values; {ADVICE}")
        self.values: Mapping[str, object] = values
        if known is not None:
            self._refuse_others(known)

    def section(self, key: str, known: Sequence[str] | None = None) -> "Section":
        return Section(self._path, self._full(key), self.values.get(key) or {}, known)

    def text(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Parse the value of a key, if there is one."""
        value = self.values.get(key) or ""
        if not isinstance(value, str):
            raise self.refusal(key, "write one value")
        try:
            return parse(value) if value else None
        except UserError as error:
            raise self.refusal(key, str(error)) from None

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refusal(key, "write a list")
        return value

    def file(self, key: str) -> Path | None:
        return self.text(key, self._beside)

    def refusal(self, key: str, advice: str, problem: str = "") -> UserError:
        place = f"{problem} {self._full(key)!r}; " if problem else f"{self._full(key)}: "
        return UserError(f"{self._path}: {place}{advice}")

    def _beside(self, text: str) -> Path:
        if not text.isprintable():
            raise UserError("write the path of a file")
        return self._path.absolute().parent / text

    def _full(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key

    def _refuse_others(self, known: Sequence[str]) -> None:
        for key in self.values:
            if key not in known:
                advice = did_you_mean(key, known, f"podgpu knows {', '.join(known)}")
                raise self.refusal(key, advice, "unknown key")
