"""What an hour of a GPU costs."""

from fnmatch import fnmatchcase

from msgspec import Struct


class Prices(Struct, frozen=True, kw_only=True):
    currency: str  # such as `EUR`
    gpu_hour: dict[str, float]  # by model, or by a pattern such as `*H200*`; the first that fits counts

    def of(self, model: str) -> float | None:
        """Return the price of an hour; None if no entry fits."""
        exact = self.gpu_hour.get(model)
        if exact is not None:
            return exact
        fitting = (price for pattern, price in self.gpu_hour.items() if fnmatchcase(model, pattern))
        return next(fitting, None)
