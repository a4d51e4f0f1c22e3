"""The program that each process of `reading` runs."""

import sys


def main() -> None:
    """Serve chunks from stdin to stdout until stdin ends."""
    # Arrow works without NumPy, and looks for pandas only where it has NumPy. To import the two
    # takes longer than all other modules together, in every process, and reading needs neither.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    from assets.manifests.reading import serve

    serve()


if __name__ == "__main__":
    main()
