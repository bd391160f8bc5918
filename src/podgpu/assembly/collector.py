import gc

OBJECTS = 100_000  # between two looks for cycles; a snapshot of a thousand cards has about as many
FEWER = 5_000  # the same where a look must be short: it takes a millisecond for a thousand or two


def relax(objects: int = OBJECTS) -> None:
    """Let Python look for reference cycles seldom: a snapshot is a large tree without any.

    Modules stay for the life of the process, so they are not looked at again.
    """
    gc.freeze()
    gc.set_threshold(objects, 20, 50)
