"""One run of `hairmesh watch`: options in, exit status out."""

from __future__ import annotations

import asyncio
import sys
import traceback
from contextlib import nullcontext

from hairmesh.watch import build, restart
from hairmesh.watch.lock import LockError, LockHeldError, only_one
from hairmesh.watch.loop import Exit, Loop, Orders
from hairmesh.watch.options import SECRET_VARIABLE, Options
from hairmesh.watch.target import TargetError


def run(options: Options) -> Exit:
    """Watch until it is known how the server is, or until a signal; what cannot be done is said on standard error."""
    try:
        return asyncio.run(_run(options, _orders(options)))
    except TargetError as error:
        status = Exit.USAGE
        message = str(error)
    except LockHeldError as error:
        status = Exit.LOCK_HELD
        message = str(error)
    except LockError as error:
        status = Exit.BROKEN
        message = str(error)
    except Exception:  # noqa: BLE001  (Python's own status would be 1: that the server is sick)
        traceback.print_exc()
        return Exit.BROKEN
    print(f"hairmesh watch: {message}", file=sys.stderr)
    return status


async def _run(options: Options, orders: Orders) -> Exit:
    limits = build.limits(options)
    target = build.target(options)  # here, since its connections belong to this event loop
    try:
        # Who only looks may look beside another.
        with only_one(target.place) if orders.acts else nullcontext():
            return await Loop(target, limits, orders).run()
    finally:
        await target.close()


def _orders(options: Options) -> Orders:
    if options.act and options.restart_cmd is None:
        raise TargetError("--act needs --restart-cmd")
    command = None if options.restart_cmd is None else restart.parse_command(options.restart_cmd)
    return Orders(
        once=options.once,
        as_json=options.as_json,
        command=command if options.act else None,
        timeout_s=options.restart_timeout_s,
        hidden=frozenset({SECRET_VARIABLE}),
    )
