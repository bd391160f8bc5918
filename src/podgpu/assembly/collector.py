import gc

OBJECTS = 100_000  # between two looks for cycles; a snapshot of a thousand cards has about as many


def relax() -> None:
    """Let Python look for reference cycles seldom: a snapshot is a large tree without any.

    Modules stay for the life of the process, so they are not looked at again.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS, 20, 50)
