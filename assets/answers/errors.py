"""Why a question has no answer."""


class NoAnswerError(Exception):
    """The answer is no: nothing of that name, several of them, or nothing to compare.

    `message` is one line; `candidates` are what was meant perhaps.
    """

    def __init__(self, message: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.candidates = candidates


class QueryError(Exception):
    """A question that cannot be asked like this; `message` is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
