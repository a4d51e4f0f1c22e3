"""The errors of the warehouse."""


class WarehouseError(Exception):
    """The warehouse cannot be used as asked; the message says where and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class OtherVersionError(WarehouseError):
    """Something that another version of this program wrote and can read; nothing is damaged."""
