"""The options about how cards are shared."""

from dataclasses import dataclass
from pathlib import Path

from podgpu.config.ratio import RATIO_FILE, ratio_file
from podgpu.option import KUBERNETES, optional, repeatable
from podgpu.option.value import path


@dataclass(frozen=True, kw_only=True)
class SharingFields:
    """They are part of every Config."""

    sharing_namespaces: tuple[str, ...] = repeatable(
        "--sharing.namespaces",
        group=KUBERNETES,
        help="Further namespaces in which a sharing system makes pods that hold cards for others. No tenant may be "
        "able to make pods there; may be repeated.",
        parse=str,
        value_name="NAME",
        default_note="those that the systems use by themselves",
    )
    sharing_ratio_file: tuple[float, ...] | None = optional(
        "--sharing.ratio-file",
        group=KUBERNETES,
        help="Into how many virtual GPUs each card is divided, for plugins that do not report it: a file with one "
        "number for the node, or one for each GPU.",
        parse=ratio_file,
        default_note=f"{RATIO_FILE} in the working directory, if there is one",
    )
    path_state: Path | None = optional(
        "--path.state",
        group=KUBERNETES,
        help="A folder of the agent's own, for what the notes on pods gave them. Who strikes his note out while "
        "the agent restarts still has it.",
        parse=path,
        default_note="none: it is forgotten at a restart",
    )
