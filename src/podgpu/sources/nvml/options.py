from dataclasses import dataclass
from pathlib import Path

from podgpu.option import SOURCE, optional
from podgpu.option.file import existing_file


@dataclass(frozen=True, kw_only=True)
class NvmlOptions:
    library: Path | None = optional(
        "--nvml.library",
        group=SOURCE,
        help="The driver's libnvidia-ml.so.1.",
        parse=existing_file,
        default_note="where the system finds it",
    )
