"""Each XID: what it means, whose fault it usually is, what to do at once, and how grave it is.

The judgement follows NVIDIA's public catalog of XIDs, by its immediate action. Words of the first table are
dcgm-exporter's own, which alerts may match.
"""

from collections.abc import Mapping

from msgspec import Struct

CAUSES: Mapping[str, str] = {
    "application": "A program on the card is usually the cause.",
    "driver": "The driver or its firmware is usually the cause.",
    "hardware": "The card or its links are usually the cause.",
    "system": "The machine around the card is usually the cause.",
    "several": "The code alone does not tell the cause.",
    "none": "Nothing is wrong.",
}
ACTIONS: Mapping[str, str] = {
    "nothing": "Nothing is to be done.",
    "restart": "Restart the pod and tell its owner. If pods of several owners fail like this on one card, suspect it.",
    "watch": "Nothing is to be done at once. If it comes again, send the output of nvidia-bug-report.sh to NVIDIA.",
    "reset": "Drain the node, then reset the GPU; reboot if that fails. If it comes again, have the card checked.",
    "reboot": "Drain the node, then reboot it. If it comes again, have the card and its slot checked.",
    "inspect": "Drain the node, then check the card's power cable and its seat.",
    "link": "Look in the kernel log for which link it was. If it comes again, drain the node and reset its GPUs.",
    "update": "Install versions of the driver and of the vGPU manager that fit together.",
    "restart_vm": "Restart the virtual machine.",
    "recover": "Do what the driver asks for: `podgpu doctor` says what it is.",
    "report": "NVIDIA's catalog has no remedy for it. Send the output of nvidia-bug-report.sh to NVIDIA.",
}


class Xid(Struct, frozen=True):
    meaning: str  # in a few words; empty if the code is not known
    severity: str = "warning"
    cause: str = "several"  # one of CAUSES
    action: str = "report"  # one of ACTIONS


_PUSH_BUFFER = "Invalid or corrupted push buffer stream"
_OF_DCGM = {
    0: "No Error",
    **dict.fromkeys((1, 2, 3, 4, 6, 11, 32), _PUSH_BUFFER),
    7: "Invalid or corrupted push buffer address",
    8: "GPU stopped processing",
    9: "Driver error programming GPU",
    12: "Driver error handling GPU exception",
    13: "Graphics Engine Exception",
    31: "GPU memory page fault",
    38: "Driver firmware error",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors -- Most likely to see when running multiple cuda applications"
    " and hitting a DBE",
    48: "Double Bit ECC Error",
    61: "Internal micro-controller breakpoint/warning",
    62: "Internal micro-controller halt",
    63: "ECC page retirement or row remapping recording event",
    64: "ECC page retirement or row remapper recording failure",
    68: "NVDEC0 Exception",
    69: "Graphics Engine class error",
    74: "NVLINK Error",
    79: "GPU has fallen off the bus",
    92: "High single-bit ECC error rate",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    119: "GSP RPC Timeout",
    120: "GSP Error",
}

_VIDEO = "A video engine raised an exception"
_DISPLAY = {
    16: "The display engine hangs",
    19: "The display engine failed",
    56: "The display engine failed",
    81: "The VGA part of the card failed",
    111: "The display reported a bundle of errors",
    112: "The display supervisor failed",
    113: "A DisplayPort link could not be trained",
    114: "The display ran out of pixels",
    115: "The core channel of the display failed",
    116: "A window channel of the display failed",
    117: "The cursor channel of the display failed",
    118: "The pixel pipeline of the display failed",
}
_ENGINES = {
    **dict.fromkeys((27, 28, 29, 34, 35, 36, 42, 47, 60, 65), _VIDEO),
    20: "The push buffer of the MPEG engine is corrupt",
    21: "The push buffer of the motion estimation is corrupt",
    22: "The push buffer of the video processor is corrupt",
    25: "A push buffer holds a command that is not allowed",
    44: "The graphics engine failed while it changed contexts",
    46: "The GPU stopped working on its commands",
    **{code: f"Copy engine {code - 39} failed" for code in (39, 40, 41)},
    **{code: f"Copy engine {number} failed" for code, number in ((70, 3), (71, 4), (72, 5), (85, 9))},
    **{code: f"Copy engine {code - 69} failed" for code in (75, 76, 77)},
    **{code: f"Copy engine {code - 116} failed" for code in range(126, 136)},
    73: "Video encoder 2 failed",
    142: "Video encoder 3 failed",
    **{code: f"Video decoder {number} failed" for code, number in ((83, 1), (84, 2), (88, 3), (89, 4))},
    **{code: f"Video decoder {code - 91} failed" for code in (96, 97, 98)},
    82: "JPEG engine 0 failed",
    **{code: f"JPEG engine {code - 98} failed" for code in range(99, 106)},
    86: "The optical flow engine raised an exception",
    139: "Optical flow engine 1 failed",
    138: "The deep learning accelerator failed",
    152: "The memory unit of the deep learning accelerator failed",
    153: "The deep learning accelerator took too long",
    109: "Changing contexts took too long",
    110: "The card refused an access for its security",
    141: "A channel failed on its fast path",
    151: "A key of a channel could not be changed",
    159: "A message on the coherent link was wrong",
}
_MEMORY = {
    24: "A semaphore of the GPU took too long",
    26: "The device memory took too long",
    30: "A semaphore of the GPU could not be accessed",
    57: "The memory interface could not be set up",
    58: "The memory interface is unstable",
    140: "An ECC error could not be recovered",
    156: "A part of the card was taken out of use",
    157: "A part of the card could not be taken out of use",
    160: "A memory channel was taken out of use",
    161: "A memory channel could not be taken out of use",
    168: "The card has less memory: its protected region has errors",
    171: "An error in device memory could not be corrected",
    172: "An error in on-chip memory could not be corrected",
}
_LINKS = {
    18: "The card may not master the PCI bus",
    80: "The card received corrupt data",
    121: "The chip-to-chip link failed",
    136: "An NVLink could not be trained",
    137: "A peer had no right to access the card by NVLink",
    **{
        code: f"NVLink: error in {unit}"
        for code, unit in zip(range(144, 151), ("SAW", "RLW", "TLW", "TREX", "NVLPW_CTRL", "NETIR", "MSE"), strict=True)
    },
    155: "NVLink: error that the software defines",
    166: "NVLink: encryption failed",
    167: "PCIe took too long, and the card is lost",
    170: "NVLink: interrupt while confidential computing is on",
}
_CARD = {
    **dict.fromkeys((33, 59), "An internal controller failed"),
    37: "The driver's firmware failed",
    54: "The card's power cable is not connected",
    **dict.fromkeys((66, 67), "The driver accessed what it must not"),
    78: "A virtual GPU could not be started",
    93: "The card's InfoROM is written too often",
    14: "Test error of the driver",
    106: "Test message of the management bus",
    107: "Silent test message of the management bus",
    122: "The card's flash memory could not be read",
    123: "The card's flash memory could not be written",
    124: "The card's flash memory could not be erased",
    125: "The card's InfoROM failed",
    143: "The card could not be initialised",
    154: "The driver asks for another recovery action",
    158: "The card took too long, and is lost",
    162: "Power smoothing works again",
    163: "Power smoothing was switched off",
    164: "The parts for power smoothing near their end",
    165: "The parts for power smoothing are worn out",
    169: "An internal controller stopped",
}
_UNUSED = (5, 10, 15, 17, 23, 49, 50, 51, 52, 53, 55, 87, 90, 91, 108)

_WORDS = {
    **dict.fromkeys(_UNUSED, "Unused"),
    **_DISPLAY,
    **_ENGINES,
    **_MEMORY,
    **_LINKS,
    **_CARD,
    **_OF_DCGM,
}

# How grave, whose fault, what to do: of those for which the catalog has an action. 0 is none at all.
_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_MEDIA_ENGINES = (60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139)
_JUDGED: tuple[tuple[str, str, str, tuple[int, ...]], ...] = (
    ("critical", "hardware", "reset", (48, 62, 64, 95, 136, 140, 143, 156, 158, 171, 172)),
    ("critical", "driver", "reset", (119, 120)),
    ("critical", "several", "reset", (46, 109, 110, 155)),
    ("critical", "hardware", "reboot", (79,)),
    ("critical", "system", "inspect", (54,)),
    ("critical", "hardware", "link", (74,)),
    ("warning", "hardware", "link", tuple(range(144, 151))),
    ("warning", "hardware", "restart", (94,)),
    ("warning", "hardware", "watch", (92, 93, 121, 157, 160, 161, 163, 164, 165)),
    ("warning", "driver", "watch", (37, 38, 66, 67)),
    ("warning", "several", "watch", (44, 108, 137, 141, 152, 153, 159)),
    ("warning", "driver", "update", (78,)),
    ("warning", "system", "restart_vm", (151,)),
    ("info", "application", "restart", (8, 11, 13, 25, 31, 32, 43, 45, 69, 80, *_COPY_ENGINES, *_MEDIA_ENGINES)),
    # These two have problems and alerts of their own, as long as something is to be done.
    ("info", "hardware", "nothing", (63,)),
    ("info", "driver", "recover", (154,)),
    ("info", "none", "nothing", (0, 14, 106, 107, 162)),
)

XIDS: Mapping[int, Xid] = {
    **{code: Xid(words) for code, words in _WORDS.items()},
    **{
        code: Xid(_WORDS[code], severity, cause, action) for severity, cause, action, codes in _JUDGED for code in codes
    },
}
UNKNOWN = Xid("")


def named(code: float) -> str:
    """Such as `XID 31 (GPU memory page fault)`; of one that is not known, the number alone."""
    number = round(code)
    meaning = XIDS.get(number, UNKNOWN).meaning
    return f"XID {number} ({meaning})" if meaning else f"XID {number}"
