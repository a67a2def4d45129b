"""Pictures over HTTP: one name leads to one picture, whole, whatever else is asked."""

from __future__ import annotations

from pathlib import Path

from tests.edge.rest import ANNOTATED, FakeMesh, Rest, serving

PRIVATE = {
    "cache-control": "private, no-store",
    "referrer-policy": "no-referrer",
    "x-robots-tag": "noindex",
    "x-content-type-options": "nosniff",
}


async def name_of(rest: Rest) -> str:
    """Of a picture that is there."""
    url: str = (await rest.measure()).json()["data"]["annotated_image_url"]
    return url.rpartition("/")[2]


async def first_line(rest: Rest, target: str) -> str:
    """What a server says of a target that is sent as it is: clients tidy theirs up."""
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    reader, writer = await rest.raw(request.encode("latin-1"))
    line = await reader.readline()
    writer.close()
    return line.decode().strip()


ASKED = (
    {"Range": "bytes=0-9"},
    {"Range": "bytes=99999999-"},
    {"If-None-Match": "*"},
    {"If-Modified-Since": "Sat, 01 Jan 2050 00:00:00 GMT"},
    {"Accept": "text/html"},
    {"Accept-Encoding": "gzip"},
)


async def test_a_picture_comes_whole_or_not_at_all(rest: Rest) -> None:
    """Nothing may keep it: so there is nothing to compare with, and no part to go on from."""
    path = f"/static/annotations/{await name_of(rest)}"
    for headers in ASKED:
        served = await rest.client.get(path, headers=headers)
        assert (served.status_code, served.content) == (200, ANNOTATED)
        assert PRIVATE.items() <= dict(served.headers).items()
        assert not {"etag", "last-modified", "accept-ranges", "content-encoding"} & set(served.headers)
        head = await rest.client.head(path, headers=headers)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(ANNOTATED)))
        assert PRIVATE.items() <= dict(head.headers).items()


FORMS = (
    *("{id}", "{id}.PNG", "{ID}.png", "{id}.png.png", ".{id}.tmp", "{id}.png/", "{id}.png;a", "{id}.png%0a"),
    *("{id}.png%00", "%20{id}.png", "./{id}.png", "/{id}.png", "x/../{id}.png", "x%2f..%2f{id}.png", "..%5c{id}.png"),
    *("%ef%bc%8e{id}.png", "{id}.png%2f..", "%c0%ae{id}.png", "a" * 8000 + ".png"),
    *("../secret.png", "..%2fsecret.png", "%2e%2e/secret.png"),
)


async def test_no_other_name_leads_to_it_or_out_of_the_folder(tmp_path: Path, mesh: FakeMesh) -> None:
    (tmp_path / "secret.png").write_text("not yours")
    async with serving(tmp_path, mesh) as rest:
        picture_id = (await name_of(rest)).removesuffix(".png")
        names = [form.replace("{id}", picture_id).replace("{ID}", picture_id.upper()) for form in FORMS]
        said = {name: await first_line(rest, f"/static/annotations/{name}") for name in names}
        assert said == dict.fromkeys(names, "HTTP/1.1 404 Not Found")
        assert await first_line(rest, f"/static/annotations/{picture_id}.png") == "HTTP/1.1 200 OK"


async def test_what_is_asked_of_another_host_is_served_as_ours_and_names_none(rest: Rest) -> None:
    name = await name_of(rest)
    assert await first_line(rest, f"http://elsewhere.example/static/annotations/{name}") == "HTTP/1.1 200 OK"


async def test_a_picture_is_only_read(rest: Rest) -> None:
    path = f"/static/annotations/{await name_of(rest)}"
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        refused = await rest.client.request(method, path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    assert (await rest.client.get(path)).content == ANNOTATED
