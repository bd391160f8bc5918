"""The parts put together as a configuration asks, for the commands and for the library alike."""
