"""Errors that every room may raise."""


class UserError(Exception):
    """One line that says what is wrong and what to do next. Ends the command with exit code 2."""


class ReasonedError(Exception):
    """Why something gave nothing: `reason` is one of a closed set, `detail` is in words."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail
