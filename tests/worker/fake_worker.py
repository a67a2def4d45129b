"""`python -m tests.worker.fake_worker CONFIG`: a worker process with the scripted pipeline.

From the environment: TEST_THRESHOLDS, a JSON object of thresholds; TEST_HOLD_LOAD, a file: models load as long as it is
there.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from hairmesh import logs
from tests.worker.fakes import FakePipeline
from vision.types import Progress
from worker import settings
from worker.server import CannotListenError, serve
from worker.thresholds import Thresholds


def load(_progress: Progress) -> FakePipeline:
    hold = os.environ.get("TEST_HOLD_LOAD")
    while hold and Path(hold).exists():
        time.sleep(0.01)
    return FakePipeline()


if __name__ == "__main__":
    logs.configure("worker")
    path = Path(sys.argv[1])
    try:
        code = asyncio.run(
            serve(
                settings.load(path, os.environ),
                load_pipeline=load,
                config_path=path,
                environ=os.environ,
                thresholds=Thresholds(**{"config_poll_s": 0.05, **json.loads(os.environ.get("TEST_THRESHOLDS", "{}"))}),
            )
        )
    except CannotListenError as error:
        sys.exit(str(error))
    sys.exit(code)
