from dataclasses import dataclass
from pathlib import Path

from podgpu.option import SOURCE
from podgpu.option.file import existing_file


@dataclass(frozen=True, kw_only=True)
class NvmlOptions:
    library: Path | None = SOURCE.optional(
        "--nvml.library",
        help="The driver's libnvidia-ml.so.1.",
        parse=existing_file,
        default_note="where the system finds it",
    )
