"""The program that `reading` runs."""

import gc
import sys


def main() -> None:
    """Get the catalog from stdin and serve the pairs of descriptors that the arguments name."""
    gc.disable()  # modules are no garbage; when to look for some, `serve` says
    # Arrow works without NumPy, and looks for pandas only where it has NumPy. To import the two
    # takes longer than all other modules together, and reading needs neither.
    sys.modules["numpy"] = None  # type: ignore[assignment]
    from assets.manifests.reading import serve

    descriptors = [int(argument) for argument in sys.argv[1:]]
    serve(sys.stdin.buffer, list(zip(descriptors[::2], descriptors[1::2], strict=True)))


if __name__ == "__main__":
    main()
