"""An address to listen on, with a dialect that there is."""

from podgpu.errors import UserError
from podgpu.option.address import NATIVE, Address
from podgpu.option.spelling import did_you_mean
from podgpu.views.dialects import dialect_names


def listener(text: str) -> Address:
    address = Address.parse(text)
    # It takes all dialects to know their names: whoever asks for none does not wait for them.
    if address.dialect != NATIVE and address.dialect not in (known := [NATIVE, *dialect_names()]):
        advice = did_you_mean(address.dialect, known, f"choose one of: {', '.join(known)}")
        raise UserError(f"there is no dialect {address.dialect!r}; {advice}")
    return address
