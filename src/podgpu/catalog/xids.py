"""What each XID means, in a few words. Those of the first table are dcgm-exporter's own, which alerts may match."""

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
_UNUSED = (5, 10, 14, 15, 17, 23, 39, 40, 41, 49, 50, 51, 52, 53, 55, 87, 90, 91, 108)

WORDS: dict[int, str] = {
    **dict.fromkeys(_UNUSED, "Unused"),
    **_DISPLAY,
    **_ENGINES,
    **_MEMORY,
    **_LINKS,
    **_CARD,
    **_OF_DCGM,
}


def named(code: float) -> str:
    """Such as `XID 31 (GPU memory page fault)`; of one that is not known, the number alone."""
    number = round(code)
    meaning = WORDS.get(number)
    return f"XID {number} ({meaning})" if meaning else f"XID {number}"
