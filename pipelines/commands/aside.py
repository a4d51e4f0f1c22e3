"""What commands say of publications that the index is built without."""

from assets.tables.set_aside import SetAside, set_aside
from assets.tables.warehouse import Warehouse
from pipelines.commands.output import program, say


def say_what_is_set_aside(warehouse: Warehouse) -> None:
    """Tell people, after something was written, what of the warehouse the index lacks."""
    for entry in set_aside(warehouse).values():
        say(f"{line_of(entry)}; {way_back(entry)}")


def line_of(entry: SetAside) -> str:
    """Which publication, since when and why."""
    return (
        f"set aside: publication {entry.publication_id}, since {entry.at:%Y-%m-%d %H:%M} UTC: "
        f"{entry.statement} breaks with it and not without it ({entry.error})"
    )


def way_back(entry: SetAside) -> str:
    """The command that puts it back."""
    number = int(entry.publication_id.partition("-")[0])
    return f"{program()} doctor --readmit {number}  puts it back once that file is mended"
