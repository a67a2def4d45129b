"""`python -m tests.e2e.lying_worker PORT`: a fake worker whose health lies.

It says SERVING to every probe. After SIGUSR1 every call fails with INTERNAL, until SIGUSR2. Each call that arrives is
one JSON line on standard output. The password comes from FAKE_WORKER_PASSWORD.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time

import grpc
from typing_extensions import override

from hairmesh.wire import WorkerReason
from tests.fakes.worker import Answer, FakeWorker, Refuse, SeenCall

TRUTH = Answer(after_s=0.02)
LIE = Refuse(grpc.StatusCode.INTERNAL, WorkerReason.WORKER_FAILED)


class _Told(list[SeenCall]):
    """The calls that came, each told as it comes."""

    def __init__(self, worker: FakeWorker) -> None:
        super().__init__()
        self._worker = worker

    @override
    def append(self, call: SeenCall, /) -> None:
        super().append(call)
        _say("call_came", at_s=time.time(), probes=self._worker.probes)


def _say(event: str, **fields: object) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


async def main(port: int) -> None:
    """Serve until killed."""
    worker = FakeWorker(password=os.environ["FAKE_WORKER_PASSWORD"], default=TRUTH)
    worker.seen = _Told(worker)
    loop = asyncio.get_running_loop()
    for number, behaviour in ((signal.SIGUSR1, LIE), (signal.SIGUSR2, TRUTH)):
        loop.add_signal_handler(number, setattr, worker, "default", behaviour)
    await worker.start(port)
    _say("listening", address=worker.address)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
