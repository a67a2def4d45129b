"""The design HairMesh replaces, as a peer to measure against: a plain FastAPI proxy in front of a FastAPI worker.

    python -m bench.peers.proxy_design worker --port P --picture-bytes N
    python -m bench.peers.proxy_design edge --port P --worker http://127.0.0.1:Q --static DIR

The photo comes as a multipart upload, travels as base64 in JSON, the picture comes back the same way and is written
to a file before the answer. Written as such services usually are: `UploadFile`, one shared `httpx.AsyncClient`, uvicorn
with its fast loop and parser, access log off.
"""

from __future__ import annotations

import argparse
import base64
import secrets
from pathlib import Path
from typing import Annotated

import httpx
import uvicorn
from fastapi import FastAPI, File, UploadFile
from pydantic import BaseModel


class Photo(BaseModel):
    """Body of the worker's call."""

    image_base64: str


def worker_app(picture: bytes) -> FastAPI:
    """A worker that answers at once with the same picture."""
    app = FastAPI()

    @app.post("/measure")
    async def measure(photo: Photo) -> dict[str, str | float]:
        base64.b64decode(photo.image_base64)
        return {"annotated_image": base64.b64encode(picture).decode(), "face_height_mm": 180.0}

    return app


def edge_app(worker: str, static: Path) -> FastAPI:
    """The proxy: upload in, JSON to the worker, picture into a file, URL out."""
    app = FastAPI()
    client = httpx.AsyncClient(base_url=worker, timeout=60)

    @app.post("/api/v1/face/measure")
    async def measure(image: Annotated[UploadFile, File()]) -> dict[str, object]:
        body = {"image_base64": base64.b64encode(await image.read()).decode()}
        answer = (await client.post("/measure", json=body)).json()
        name = f"{secrets.token_hex(16)}.png"
        (static / name).write_bytes(base64.b64decode(answer.pop("annotated_image")))
        return {"code": 0, "message": "ok", "data": {**answer, "annotated_image_url": f"/static/annotations/{name}"}}

    return app


def main() -> None:
    """Serve one of the two until killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=["worker", "edge"])
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--picture-bytes", type=int, default=300_000)
    parser.add_argument("--worker", default="")
    parser.add_argument("--static", type=Path)
    args = parser.parse_args()
    if args.role == "worker":
        app = worker_app(secrets.token_bytes(args.picture_bytes))
    else:
        args.static.mkdir(parents=True, exist_ok=True)
        app = edge_app(args.worker, args.static)
    uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="warning", access_log=False)


if __name__ == "__main__":
    main()
