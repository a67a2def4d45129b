"""`python -m tests.worker.fake_worker CONFIG`: a worker process with the scripted pipeline."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from hairmesh import logs
from tests.worker.fakes import FakePipeline
from worker import settings
from worker.server import CannotListenError, serve
from worker.thresholds import Thresholds

if __name__ == "__main__":
    logs.configure("worker")
    path = Path(sys.argv[1])
    try:
        code = asyncio.run(
            serve(
                settings.load(path, os.environ),
                load_pipeline=FakePipeline().load,
                config_path=path,
                environ=os.environ,
                thresholds=Thresholds(config_poll_s=0.05),
            )
        )
    except CannotListenError as error:
        sys.exit(str(error))
    sys.exit(code)
