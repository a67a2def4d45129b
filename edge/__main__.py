"""`hairmesh-edge`: signals first, then everything else."""

from __future__ import annotations

import sys

from hairmesh.entry import end_in_order_when_told, keep_grpc_quiet, leave_no_core, naming_what_is_missing


def main() -> None:
    """Entry point of the command."""
    if "--check" not in sys.argv:  # one that is stopped has not found the file good
        end_in_order_when_told()
    leave_no_core()
    keep_grpc_quiet()
    with naming_what_is_missing("hairmesh-edge", "edge"):
        from edge import command  # noqa: PLC0415  (takes a second)

    command.main()


if __name__ == "__main__":
    main()
