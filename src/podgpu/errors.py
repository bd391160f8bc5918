"""Errors that a user can do something about."""


class UserError(Exception):
    """One line that says what is wrong and what to do next. Ends the command with exit code 2."""
