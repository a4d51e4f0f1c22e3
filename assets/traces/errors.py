"""What can go wrong while a dataset is pulled, as few classes as callers tell apart."""


class DatasetError(Exception):
    """A dataset cannot be pulled as asked; `message` is one line that says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class TransientDatasetError(DatasetError):
    """A passing fault (network, rate limit, busy server): the same pull may work later."""


class PullStoppedError(TransientDatasetError):
    """The pull was asked to stop before it was complete."""

    def __init__(self) -> None:
        super().__init__("the pull was stopped; run it again to continue")


class RawStoreError(DatasetError):
    """Raw bytes are missing from the store or are not what their digest says."""
