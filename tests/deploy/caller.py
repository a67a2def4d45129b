"""A client that goes on calling until SIGTERM: `python -m tests.deploy.caller URL CA PHOTO`; a line for every answer.

Two of them at once: one keeps its connection, as an app does, the other opens a new one for each call. Neither tries
anything again, so that whatever fails is seen.
"""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import httpx

from hairmesh.client import MEASURE_ROUTE

POLITE_S = 0.2
"""What it waits after a refusal."""
PATIENCE_S = 120.0


async def call(client: httpx.AsyncClient, photo: bytes) -> bool:
    """One measurement, told as a line; whether it went well."""
    try:
        answer = await client.post(MEASURE_ROUTE, files={"image": ("p.jpg", photo)})
    except httpx.TransportError as error:
        told: dict[str, object] = {"status": 0, "code": -1, "reason": repr(error), "retry_after": None}
    else:
        body = answer.json()
        reason = body["data"].get("reason", "")
        retry_after = answer.headers.get("retry-after")
        told = {"status": answer.status_code, "code": body["code"], "reason": reason, "retry_after": retry_after}
    print(json.dumps(told), flush=True)
    return told["code"] == 0


async def go_on(url: str, trust: ssl.SSLContext, photo: bytes, enough: asyncio.Event, *, keep: bool) -> None:
    """Calls one after the other; the last one is waited for."""
    async with AsyncExitStack() as open_now:
        client: httpx.AsyncClient | None = None
        while not enough.is_set():
            if client is None or not keep:
                await open_now.aclose()
                client = httpx.AsyncClient(base_url=url, verify=trust, trust_env=False, timeout=PATIENCE_S)
                await open_now.enter_async_context(client)
            if not await call(client, photo):
                await asyncio.sleep(POLITE_S)


async def main(url: str, authority: str, photo: str) -> None:
    """See the module."""
    trust, picture, enough = ssl.create_default_context(cafile=authority), Path(photo).read_bytes(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, enough.set)
    await asyncio.gather(*(go_on(url, trust, picture, enough, keep=keep) for keep in (True, False)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
