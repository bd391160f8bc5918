import gc

# Between two looks for cycles. Each client leaves about ten objects in one, by the transport of Python 3.11.
OBJECTS = 20_000
FEWER = 5_000  # the same where a look must be short: it takes a millisecond for a thousand or two


def relax(objects: int = OBJECTS) -> None:
    """Let Python look for reference cycles seldom: a snapshot is a large tree without any.

    Modules stay for the life of the process, so they are not looked at again.
    """
    gc.freeze()
    gc.set_threshold(objects, 20, 50)
