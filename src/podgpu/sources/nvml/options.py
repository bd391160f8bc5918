from dataclasses import dataclass
from pathlib import Path

from podgpu.option import SOURCE, Option, at_most_one
from podgpu.option.file import existing_file


@dataclass(frozen=True, kw_only=True)
class Options:
    library: Path | None = at_most_one(
        Option(
            flag="--nvml.library",
            group=SOURCE,
            help="The driver's libnvidia-ml.so.1.",
            parse=existing_file,
            value_name="PATH",
            default_note="where the system finds it",
        )
    )
