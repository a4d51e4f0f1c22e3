"""The one error of the warehouse."""


class WarehouseError(Exception):
    """The warehouse cannot be used as asked; the message says where and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
