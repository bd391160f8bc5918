from dataclasses import dataclass
from pathlib import Path

from podgpu.option import SOURCE
from podgpu.option.file import existing_file
from podgpu.option.value import factor, on_off


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    file: Path | None = SOURCE.optional(
        "--replay.file",
        help="A recording to play, made by `podgpu record`.",
        parse=existing_file,
    )
    speed: float = SOURCE.single(
        "--replay.speed",
        help="How many times as fast as it was recorded, from 0.1 to 1000.",
        parse=factor(0.1, 1000),
        default="1",
    )
    loop: str = SOURCE.single(
        "--replay.loop",
        help="Whether to begin again at the end; else the last moment stays.",
        parse=on_off,
        default="off",
    )
