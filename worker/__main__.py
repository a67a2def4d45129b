"""`hairmesh-worker`: signals first, then everything else."""

from __future__ import annotations

from hairmesh.entry import end_in_order_when_told, keep_grpc_quiet, leave_no_core, naming_what_is_missing


def main() -> None:
    """Entry point of the command."""
    end_in_order_when_told()
    leave_no_core()
    keep_grpc_quiet()
    with naming_what_is_missing("hairmesh-worker", "worker"):
        from worker import command  # noqa: PLC0415  (takes seconds)

    command.main()


if __name__ == "__main__":
    main()
