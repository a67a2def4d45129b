"""Requests nobody should have to answer, byte by byte as they go over the line. Seeded; for `bench/hostile.py`.

Each carries a mark that is seen nowhere else: whatever repeats it has leaked a piece of the request.
"""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.hostile_pictures import CHEAP, COSTLY, Originals, mutated
from hairmesh.client import (
    FEATURES_ROUTE,
    GROW_ROUTE,
    HAIRLINES_ROUTE,
    MASKS_ROUTE,
    MEASURE_ROUTE,
    SLOW_ROUTES,
    SPECIAL_POINTS_ROUTE,
    STYLES_ROUTE,
)

FAST_ROUTES = (MEASURE_ROUTE, HAIRLINES_ROUTE, MASKS_ROUTE, FEATURES_ROUTE, SPECIAL_POINTS_ROUTE)
ROUTES = (*FAST_ROUTES, STYLES_ROUTE, GROW_ROUTE)
FACE_SHARE = 0.25
"""How many of the spoilt photos were of a face: the whole of a call is done for those that are still good."""
MARK = b"Leak~Mark~"
"""How every mark begins. No name of a field or of a request has a `~`: those may be repeated."""
GONE_PATHS = (
    "/api/v1/face/nothing",
    "/static/annotations/../../edge.json",
    "/api//v1/face/measure",
    "/",
    "/%00",
    "/.env",
)
DOORS = ("/admin/pool", "/admin/stats", "/metrics", "/console", "/monitor", "/health", "/docs", "/openapi.json")
METHODS = ("GET", "HEAD", "PUT", "PATCH", "OPTIONS", "TRACE", "DELETE", "CONNECT", "PROPFIND", "post", "P\0ST", "")

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Shot:
    """One request."""

    group: str
    wire: bytes = field(repr=False)
    breaks_off: bool = False
    """Whether its client closes its side before the request is whole."""
    to_the_end: bool = False
    """Whether its client reads until the connection is closed: it holds several requests."""


class Arsenal:
    """Makes shots; the same seed makes the same ones."""

    def __init__(self, seed: int) -> None:
        self._luck = random.Random(seed)  # chance, no secret
        self._originals = Originals()
        self._count = 0
        self._groups: dict[str, tuple[int, Callable[[bytes], tuple[bytes, bool]]]] = {
            "broken HTTP": (12, self._broken_http),
            "odd headers": (12, self._odd_headers),
            "paths, methods, tokens": (12, self._elsewhere),
            "JSON": (18, self._json),
            "forms": (18, self._form),
            "no pictures": (18, self._cheap_picture),
            "spoilt pictures": (9, self._mutant),
            "one connection": (9, self._one_connection),
            "bombs": (1, self._costly_picture),
        }

    @property
    def groups(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._groups)

    def shot(self) -> Shot:
        """The next one."""
        names, rows = zip(*self._groups.items(), strict=True)
        group = self._luck.choices(names, [weight for weight, _make in rows])[0]
        self._count += 1
        wire, breaks_off = self._groups[group][1](MARK + f"{self._count:06}".encode())
        return Shot(group, wire, breaks_off, to_the_end=group == "one connection" and not breaks_off)

    def warm_up(self) -> list[Shot]:
        """A good photo for every call: models are loaded by what is asked first."""
        photo = self._originals.pick(random.Random(0), face_share=1)
        return [Shot("warm-up", _post(route, *_form_of([_file(b"image", photo)]))) for route in FAST_ROUTES]

    def _route(self) -> str:
        return self._luck.choice(ROUTES)

    # Each of these makes the bytes, and says whether they break off.

    def _broken_http(self, mark: bytes) -> tuple[bytes, bool]:
        luck, body = self._luck, b'{"image_base64": "' + mark + b'"}'
        target = b"POST " + self._route().encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        length = b"Content-Length: %d\r\n" % len(body)
        whole = target + length + b"\r\n" + body
        chunked = target + b"Transfer-Encoding: chunked\r\n"
        kinds: Sequence[tuple[bytes, bool]] = (
            (mark + b"\r\n\r\n", False),
            (b"GET /" + mark + b"\r\n\r\n", False),
            (b"GET / HTTP/9.9\r\nX: " + mark + b"\r\n\r\n", False),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + mark, False),
            (b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + luck.randbytes(200) + mark, True),
            (luck.randbytes(luck.choice((1, 40, 3000))) + mark, True),
            (target + b"Content-Length: -1\r\n\r\n" + body, False),
            (target + b"Content-Length: 1e3\r\n\r\n" + body, True),
            (target + length + b"Content-Length: 5\r\n\r\n" + body, False),
            (target + length + b"Transfer-Encoding: chunked\r\n\r\n" + body, True),
            (target + b"Transfer-Encoding: " + mark + b"\r\n\r\n" + body, True),
            (target + b"Content-Length: 1000000\r\n\r\n" + body, True),
            (target + b"Content-Length: " + b"0" * 5000 + b"%d\r\n\r\n" % len(body) + body, True),
            (target + b"Content-Length: 1" + b"0" * 5000 + b"\r\n\r\n" + body, True),
            (target + b"X-" + mark + b"\0: 1\r\n" + length + b"\r\n" + body, False),
            (target + b"X: " + mark + b"\x01\r\n" + length + b"\r\n" + body, False),
            (target + b" folded: " + mark + b"\r\n" + length + b"\r\n" + body, False),
            (target + b"X: " + mark * luck.choice((100, 5000, 50_000)) + b"\r\n" + length + b"\r\n" + body, False),
            (target + b"X: 1\r\n" * luck.choice((50, 500, 5000)) + length + b"\r\n" + body, False),
            (target.replace(b"\r\n", b"\n") + length.replace(b"\r\n", b"\n") + b"\n" + body, False),
            (target.replace(b"\r\n", b"\r") + b"\r\r" + body, True),
            (chunked + b"\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n", False),
            (chunked + b"\r\nffffffffffffffff\r\n" + body, True),
            (chunked + b"\r\nzz\r\n" + body, False),
            (chunked + b"\r\n5;" + mark * 3000 + b"\r\n" + body, True),
            (chunked + b"\r\n%x\r\n" % len(body) + body + b"\r\n0\r\nTrailer: " + mark + b"\r\n\r\n", False),
            (whole[: luck.randrange(1, len(whole))], True),
            (whole * luck.choice((2, 20)), True),
            (whole + mark, True),
            (whole.replace(b"POST /", b"POST http://evil.example/" + mark + b"/"), False),
            (whole.replace(b"Host: x", b"Host: " + mark), False),
            (whole.replace(b"Host: x", b"Expect: " + mark), True),
            (
                whole.replace(b"Host: x", b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " + mark),
                True,
            ),
        )
        return luck.choice(kinds)

    def _one_connection(self, mark: bytes) -> tuple[bytes, bool]:
        """Several requests on it, sent ahead, some of which offer another protocol; the last one closes it."""
        luck = self._luck
        json_body = json.dumps({"image_base64": base64.b64encode(self._picture(mark)).decode()}).encode()
        get = _kept(b"GET", luck.choice(DOORS).encode(), b"", [(b"X-Admin-Token", mark)])
        post = _kept(b"POST", self._route().encode(), json_body, [(b"Content-Type", b"application/json")])
        upgrade = luck.choice(
            (
                [(b"Connection", b"Upgrade, HTTP2-Settings"), (b"Upgrade", b"h2c"), (b"HTTP2-Settings", mark)],
                [(b"Connection", b"keep-alive, upgrade"), (b"Upgrade", b"websocket, " + mark)],
                [(b"Connection", b"Upgrade"), (b"Upgrade", mark)],
            )
        )
        offer = _kept(b"POST", self._route().encode(), json_body, [(b"Content-Type", b"application/json"), *upgrade])
        expect = _kept(
            b"POST",
            self._route().encode(),
            json_body,
            [(b"Content-Type", luck.choice((b"application/json", mark))), (b"Expect", b"100-continue")],
        )
        last = _request(b"GET", b"/health", b"", [(b"X", mark)])
        kinds: Sequence[tuple[bytes, bool]] = (
            (get * luck.choice((1, 5, 50)) + last, False),
            (get * 5000, True),
            (post * luck.choice((1, 3)) + last, False),
            (post + get + mark + b"\r\n\r\n", False),
            (get * luck.choice((1, 3)) + mark + b"\r\n\r\n", False),
            (get + post[: luck.randrange(1, len(post))], True),
            (offer + last, False),
            (offer * 3 + get, True),
            (get + offer + last, False),
            (expect + last, False),
        )
        return luck.choice(kinds)

    def _odd_headers(self, mark: bytes) -> tuple[bytes, bool]:
        luck = self._luck
        good = json.dumps({"image_base64": base64.b64encode(self._picture(mark)).decode()}).encode()
        odd: Sequence[Headers] = (
            [
                (
                    b"Content-Type",
                    luck.choice((mark, b"image/png", b"\xff/\xfe", b"multipart/form-data", b"text/plain; " + mark)),
                )
            ],
            [(b"Content-Type", b"application/json; charset=" + luck.choice((mark, b"utf-16", b"x" * 9000)))],
            [
                (
                    b"Content-Type",
                    b"multipart/form-data; boundary=" + luck.choice((mark, b'"', b"\xff", b"a" * 5000, b"")),
                )
            ],
            [(b"Content-Type", b"multipart/form-data" + b";" * luck.choice((200, 30_000)) + b"boundary=" + mark)],
            [(b"Content-Encoding", luck.choice((b"gzip", b"br", mark)))],
            [(b"Accept-Language", luck.choice((mark, b"en;q=" + mark, b"en," * 3000, b"\xe4\xb8\xad")))],
            [(b"X-Request-ID", luck.choice((mark, mark * 100, b"\xff" * 8, b"a b"))), (b"X-Request-ID", mark)],
            [(b"X-Request-Timeout-Ms", luck.choice((mark, b"-1", b"0", b"1e9", b"9" * 400, b"\xb2")))],
            [(b"Authorization", luck.choice((mark, b"Bearer " + mark, b"Basic " + base64.b64encode(mark), b"Bearer")))],
            [(b"X-API-Key", mark), (b"X-Admin-Token", mark), (b"X-Internal-Token", mark)],
            [(b"Cookie", b"hairmesh=" + mark + b"; " * 500)],
            [(b"traceparent", luck.choice((mark, b"00-" + b"0" * 32 + b"-" + b"0" * 16 + b"-01", b"ff-" + mark)))],
            [(b"X-Forwarded-For", mark + b", ::1" * 200), (b"Forwarded", b"host=" + mark), (b"X-Forwarded-Host", mark)],
            [(b"Accept", luck.choice((b"text/event-stream", mark, b"*/*;q=" + mark)))],
            [(b"Range", b"bytes=0-" + mark), (b"If-None-Match", mark), (b"TE", mark), (b"User-Agent", mark * 20)],
        )
        body = gzip.compress(bytes(5_000_000) + mark, mtime=0) if luck.random() < 0.1 else good
        headers = luck.choice(odd)
        kind = () if headers[0][0] == b"Content-Type" else ((b"Content-Type", b"application/json"),)
        return _request(b"POST", self._route().encode(), body, (*kind, *headers)), False

    def _elsewhere(self, mark: bytes) -> tuple[bytes, bool]:
        luck = self._luck
        if luck.random() < 0.3:
            path = luck.choice((*DOORS, "/monitor/fault", "/admin/pool")).encode()
            headers = [(luck.choice((b"X-Admin-Token", b"X-Internal-Token", b"Authorization")), mark)]
            return _request(
                b"POST" if b"fault" in path else b"GET", path, b'{"enabled": "' + mark + b'"}', headers
            ), False
        method = luck.choice(METHODS).encode()
        paths = (*GONE_PATHS, *ROUTES, *DOORS, "/static/annotations/x.png", "/api/v1/requests/x/pictures")
        path = luck.choice(paths).encode() + luck.choice(
            (b"", b"?token=" + mark, b"/" + mark, b"%2f..%2f" + mark, b"?" + mark, b"%0a", b"%0a?token=" + mark)
        )
        return _request(method, path, luck.choice((b"", mark)), [(b"X-Admin-Token", mark)]), False

    def _json(self, mark: bytes) -> tuple[bytes, bool]:
        luck, text = self._luck, mark.decode()
        picture = base64.b64encode(self._picture(mark)).decode()
        odd: Sequence[Any] = (
            *(None, True, False, -1, 10**30, 1e308, 0.1, "", text, text * 5000, [], [text], [[]], {}, {text: text}),
            *([text] * 10_000, [[0, 0]] * 5000, {"a": {"a": {"a": text}}}, "\ud800", "\0", "🙂" * 300, "9" * 5000),
            *([[0, 0], [1e300, 1], [1, 1e-300]], [[5, 5], [50, 5], [5, 50]], [None] * 5, "[[0,0],[9,0],[0,9]]"),
        )
        names = (
            "lang",
            "styles",
            "sex",
            "seed",
            "region",
            "parts",
            "annotate",
            "pupillary_distance_mm",
            "height",
            text,
        )
        content: dict[str, Any] = {"image_base64": picture}
        for _ in range(luck.randrange(4)):
            content[luck.choice((*names, "image_base64", "mask_base64", "image"))] = luck.choice(odd)
        body = json.dumps(content).encode()
        how = luck.randrange(12)
        if how == 0:
            body = body[: luck.randrange(len(body))]
        elif how == 1:
            body = luck.choice((b"[", b'{"a":')) * luck.choice((100, 1000, 100_000)) + mark
        elif how == 2:
            body = body.replace(b'"image_base64"', b'"image_base64": "%s", "image_base64"' % mark, 1)
        elif how == 3:
            at = luck.randrange(len(body))
            body = body[:at] + luck.choice((b"\xff\xfe", b"\xed\xa0\x80", b"\0", b"NaN", b"//" + mark)) + body[at:]
        elif how == 4:
            body = body.decode().encode(luck.choice(("utf-16", "utf-32", "utf-7")))
        elif how == 5:
            damage = luck.choice(
                (picture.replace("A", " "), picture[:-3], f"data:{text};base64,{picture}", picture + text)
            )
            body = json.dumps({"image_base64": damage}).encode()
        elif how == 6:
            body = luck.choice(
                (b"", b"null", b'"%s"' % mark, b"[%s]" % mark, b"1" * 100_000, b'{"%s":1}' % (mark * 9000))
            )
        return _request(b"POST", self._route().encode(), body, [(b"Content-Type", b"application/json")]), False

    def _form(self, mark: bytes) -> tuple[bytes, bool]:
        luck = self._luck
        names = (
            b"../../" + mark,
            b"a\0" + mark,
            b'x"; name="' + mark,
            mark * 500,
            b"\xff\xfe",
            b"con.png;" + mark,
            b"",
        )
        parts = [_file(b"image", self._picture(mark), name_of_file=luck.choice(names))]
        for _ in range(luck.randrange(4)):
            name = luck.choice(
                (b"lang", b"styles", b"region", b"seed", b"image", b"mask", b"image_base64", mark, b"\xff")
            )
            value = luck.choice(
                (b"", mark, mark * 9000, b"\xff\xff", b"[[0,0],[1,1],[0,1]]", b"round," * 2000, b"1e999")
            )
            parts.append(luck.choice((_file(name, value), _field(name, value))))
        boundary, body = _form_of(parts)
        how = luck.randrange(12)
        if how == 0:
            body = body[: luck.randrange(len(body))]
        elif how == 1:
            body = body.replace(b"\r\n", b"\n")
        elif how == 2:
            body = body.replace(b"form-data", luck.choice((mark, b"attachment", b"form-data; form-data")), 1)
        elif how == 3:
            body = _form_of([_field(b"%s%d" % (mark, number), b"") for number in range(luck.choice((33, 5000)))])[1]
        elif how == 4:
            body = (b"--" + boundary + b"\r\n") * luck.choice((10, 50_000)) + mark
        elif how == 5:
            at = luck.randrange(len(body))
            body = body[:at] + luck.randbytes(luck.choice((1, 50, 5000))) + body[at:]
        elif how == 6:
            body = body.replace(b"\r\n\r\n", b"\r\nX-" + mark * 3000 + b": 1\r\n\r\n", 1)
        elif how == 7:
            boundary = luck.choice((b"wrong", b"b" * 300, b"-"))
        elif how == 8:
            boundary = b"B"
            body = luck.choice((b"\r\n--B-", b"\r\n--B\r", b"\r\n--B;" + mark)) * 200_000
        elif how == 9:
            body = body.replace(b"\r\n--" + boundary, b"\r\n--" + boundary + b" " * 1_000_000, 1)
        elif how == 10:
            body = _form_of([_field(b"a" + b";" * 4000 + mark, b"")] * 30)[1]
        return _post(self._route(), boundary, body), False

    def _cheap_picture(self, mark: bytes) -> tuple[bytes, bool]:
        return self._sent(_one_of(self._luck, CHEAP, mark), self._route(), mark), False

    def _costly_picture(self, mark: bytes) -> tuple[bytes, bool]:
        return self._sent(_one_of(self._luck, COSTLY, mark), self._route(), mark), False

    def _mutant(self, mark: bytes) -> tuple[bytes, bool]:
        """A spoilt photo; growth, which takes its time with one that is still good, gets one of nothing."""
        route = self._route()
        face_share = 0.0 if route in SLOW_ROUTES else FACE_SHARE
        return self._sent(
            mutated(self._originals.pick(self._luck, face_share=face_share), self._luck, mark), route, mark
        ), False

    def _picture(self, mark: bytes) -> bytes:
        return _one_of(self._luck, CHEAP, mark)

    def _sent(self, picture: bytes, route: str, mark: bytes) -> bytes:
        if self._luck.random() < 0.3:
            body = json.dumps({"image_base64": base64.b64encode(picture).decode()}).encode()
            return _request(b"POST", route.encode(), body, [(b"Content-Type", b"application/json")])
        parts = [_file(b"image", picture, name_of_file=mark + b".jpg")]
        if route == GROW_ROUTE:
            mask = (
                picture
                if self._luck.random() < 0.5
                else mutated(self._originals.pick(self._luck, face_share=0), self._luck, mark)
            )
            parts.append(_file(b"mask", mask))
        return _post(route, *_form_of(parts))


def _one_of(luck: random.Random, kinds: Sequence[Callable[[random.Random, bytes], bytes]], mark: bytes) -> bytes:
    """A picture of one of these kinds."""
    return luck.choice(kinds)(luck, mark)


def _request(method: bytes, path: bytes, body: bytes, headers: Headers) -> bytes:
    """One after which the connection is closed."""
    return _kept(method, path, body, [(b"Connection", b"close"), *headers])


def _kept(method: bytes, path: bytes, body: bytes, headers: Headers) -> bytes:
    """One after which the connection stays."""
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: 127.0.0.1"]
    lines += [name + b": " + value for name, value in headers]
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _post(route: str, boundary: bytes, body: bytes) -> bytes:
    return _request(b"POST", route.encode(), body, [(b"Content-Type", b"multipart/form-data; boundary=" + boundary)])


def _file(name: bytes, data: bytes, *, name_of_file: bytes = b"p.jpg") -> bytes:
    disposition = b'Content-Disposition: form-data; name="' + name + b'"; filename="' + name_of_file + b'"'
    return disposition + b"\r\nContent-Type: image/jpeg\r\n\r\n" + data


def _field(name: bytes, value: bytes) -> bytes:
    return b'Content-Disposition: form-data; name="' + name + b'"\r\n\r\n' + value


def _form_of(parts: Sequence[bytes]) -> tuple[bytes, bytes]:
    """Boundary and body."""
    boundary = b"hostile"
    return boundary, b"".join(
        b"--" + boundary + b"\r\n" + part + b"\r\n" for part in parts
    ) + b"--" + boundary + b"--\r\n"
