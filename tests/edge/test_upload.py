"""Bodies taken apart: base64 in every dress, forms, limits."""

from __future__ import annotations

import asyncio
import base64
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from typing_extensions import override

from edge import base64_text, upload
from edge.errors import ApiError
from edge.parameters import MAX_CORNERS
from edge.upload import ClientGoneError, Shape, Upload, read_body
from tests.edge.clock import Clock

Message = dict[str, Any]


PHOTO_ALONE = Shape()


class Alone:
    """Room for everything, and nobody else's turn."""

    def take(self, count: int) -> None:
        pass

    async def turn(self, pieces: int = 1) -> None:
        await asyncio.sleep(0)


def parse(content_type: str, body: bytes, shape: Shape = PHOTO_ALONE) -> Upload:
    return asyncio.run(upload.parse(content_type, body, shape, Alone()))


def decode(text: str) -> bytes:
    return b"".join(base64_text.decoded(text))


def reason_of(work: Callable[[], object]) -> str:
    with pytest.raises(ApiError) as caught:
        work()
    return caught.value.reason


def details_of(work: Callable[[], object], reason: str) -> dict[str, Any]:
    with pytest.raises(ApiError) as caught:
        work()
    assert caught.value.reason == reason
    return dict(caught.value.details)


def lines(text: str, width: int, end: str) -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


@given(
    data=st.binary(max_size=600),
    url_safe=st.booleans(),
    padded=st.booleans(),
    width=st.sampled_from([0, 64, 76]),
    end=st.sampled_from(["\n", "\r\n"]),
    prefix=st.sampled_from(
        ["", "data:image/png;base64,", "DATA:IMAGE/PNG;charset=x;base64,", " \n", "\ndata:;base64,"]
    ),
    tail=st.sampled_from(["", "\n", "\r\n"]),
)
def test_every_dress_of_base64_gives_the_same_bytes(
    data: bytes, url_safe: bool, padded: bool, width: int, end: str, prefix: str, tail: str
) -> None:
    text = (base64.urlsafe_b64encode if url_safe else base64.b64encode)(data).decode()
    text = text if padded else text.rstrip("=")
    text = lines(text, width, end) if width else text
    assert decode(prefix + text + tail) == data


@given(data=st.binary(min_size=30, max_size=200), place=st.integers(0, 10_000), bad=st.sampled_from(" \t!é\x00,=%"))
def test_a_foreign_character_is_never_dropped(data: bytes, place: int, bad: str) -> None:
    text = base64.b64encode(data).decode().rstrip("=")
    place = 1 + place % (len(text) - 1)
    assume(bad != "=" or place < len(text) - 2)  # at the end it is padding
    assert reason_of(lambda: decode(text[:place] + bad + text[place + 1 :])) == "BAD_BASE64"


@given(data=st.binary(min_size=3, max_size=200))
def test_plus_turned_into_a_blank_is_refused(data: bytes) -> None:
    text = base64.b64encode(b"\xff\xd8\xff\xfb\xef\xbe" + data).decode()
    assert "+" in text
    assert reason_of(lambda: decode(text.replace("+", " "))) == "BAD_BASE64"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("QUJD RA==", "blanks inside"),
        ("QUJDRA==\t", "blanks inside"),
        ("QUJD%2BRA", "characters that are not base64"),
        ("QUJDé", "characters that are not base64"),
        ("QUJDR", "cut off, or = in the wrong place"),
        ("QUJDRB==", "cut off"),
        ("ab+/ab-_", "two alphabets"),
        ("QUJD\n\nQUJD", "lines of different width"),
    ],
)
def test_what_is_wrong_with_base64_is_said(text: str, problem: str) -> None:
    assert details_of(lambda: decode(text), "BAD_BASE64") == {"problem": problem}


@pytest.mark.parametrize(
    "text",
    [
        "QUJD RA==",  # a blank inside
        "QUJDRA==\t",  # after the end
        "QUJDR",  # no bytes have this length
        "QUJDRA=",  # half the padding
        "QUJDRA===",
        "QUJD==RA",
        "QUJDRB==",  # bits left over: the tail is gone
        "QUJDRB",
        "ab+/ab-_",  # two alphabets
        "QUJD\nQUJDRA==\nQQ==",  # lines of different width
        "QUJD\n\nQUJD",
        "QUJD\rQUJD",
        "data:image/png,abcd",
        "data:image/png;base64;base64,QUJD,QUJD",
    ],
)
def test_damaged_base64_is_refused(text: str) -> None:
    assert reason_of(lambda: decode(text)) == "BAD_BASE64"


def form(*parts: tuple[str, bytes], boundary: str = "xyz", end: bytes = b"--\r\n") -> bytes:
    body = b""
    for disposition, content in parts:
        body += f"--{boundary}\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n"
    return body + f"--{boundary}".encode() + end


TYPE = 'multipart/form-data; boundary="xyz"'
IMAGE = ('form-data; name="image"; filename="p.jpg"', b"\xff\xd8\xff photo")


@given(content=st.binary(max_size=500), text=st.text(max_size=50), order=st.booleans())
def test_a_form_comes_apart_as_it_was_made(content: bytes, text: str, order: bool) -> None:
    content = content.replace(b"--xyz", b"")
    parts = [
        ('form-data; name="image"; filename="p.jpg"', content),
        ('form-data; name="lang"', text.encode("utf-8", "ignore")),
    ]
    found = parse(TYPE, form(*(parts if order else parts[::-1])))
    assert found == Upload(files={"image": content}, parameters={"lang": text.encode("utf-8", "ignore").decode()})


@pytest.mark.parametrize(
    "disposition",
    [
        'form-data; name="image"; filename="../../static/owned.png"',
        'form-data; name="image"; filename="/tmp/outside.png"',
        'form-data; name="image"; filename="a\\..\\b.png"',
        f'form-data; name="image"; filename="{"x" * 300}"',
        'form-data; name="image"; filename=""',
        'form-data; name="image"; filename="顔🚀’.png"',
        'form-data; name="image"; filename="a\nb\\"c.png"',
        "form-data; name=\"image\"; filename*=UTF-8''%e9%a1%94.png",
        'form-data; filename="p.jpg"; name=image',
    ],
)
def test_names_of_files_do_not_matter(disposition: str) -> None:
    assert parse(TYPE, form((disposition, b"photo"))).files == {"image": b"photo"}


def test_headers_of_parts_are_ignored() -> None:
    body = form(IMAGE).replace(b"\r\n\r\n", b"\r\nContent-Type: text/html\r\nX-Other: 1\r\n\r\n", 1)
    assert parse(TYPE, body).files == {"image": IMAGE[1]}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data", form(IMAGE)),
        ("multipart/form-data; boundary=", form(IMAGE)),
        ("multipart/form-data; boundary=" + "b" * 300, form(IMAGE)),
        ("multipart/form-data; boundary=other", form(IMAGE)),
        (TYPE, b""),
        (TYPE, form(IMAGE)[:-9]),
        (TYPE, form(IMAGE, end=b"\r\n")),
        (TYPE, form(("form-data", b"no name"))),
        (TYPE, form(('attachment; name="image"; filename="p"', b"x"))),
        (TYPE, b"--xyz\r\n\r\nno header\r\n--xyz--"),
        (TYPE, b'--xyz\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nx\r\n--xyz--\r\n'),
        (TYPE, form(*[(f'form-data; name="f{number}"', b"x") for number in range(40)])),
        (TYPE, b"--xyz\r\n" + b"X: y\r\n" * 100 + b"\r\nx\r\n--xyz--"),
        (TYPE, b"--xyz\r\nX: " + b"y" * 100_000 + b"\r\n\r\nx\r\n--xyz--"),
    ],
)
def test_what_is_no_form(content_type: str, body: bytes) -> None:
    assert list(details_of(lambda: parse(content_type, body), "BAD_MULTIPART")), "says what is wrong"


@pytest.mark.parametrize(
    ("parts", "details"),
    [
        ((IMAGE, IMAGE), {"field": "image", "problem": "sent twice"}),
        (
            (IMAGE, ('form-data; name="lang"', b"zh"), ('form-data; name="lang"', b"en")),
            {"field": "lang", "problem": "sent twice"},
        ),
        ((IMAGE, ('form-data; name="image"', b"zh")), {"field": "image", "problem": "sent twice"}),
        ((('form-data; name="image"', b"no file"),), {"field": "image", "expected": "a file"}),
        (
            (IMAGE, ('form-data; name="lang"; filename="l"', b"zh")),
            {"field": "lang", "problem": "is not a file of this call"},
        ),
        *(
            (
                (other, *rest),
                {
                    "field": "image_base64",
                    "expected": "a file named image; base64 is for JSON bodies",
                },
            )
            for other in (
                ('form-data; name="image_base64"', b"QUJD" * 100_000),
                ('form-data; name="image_base64"; filename="p"', b"QUJD"),
            )
            for rest in ((), (IMAGE,))
        ),
        ((IMAGE, ('form-data; name="lang"', b"\xff")), {"field": "lang", "expected": "UTF-8 text"}),
        ((IMAGE, ('form-data; name="lang"', b"x" * 70_000)), {"field": "lang", "max_bytes": 65_536}),
    ],
)
def test_wrong_fields_are_named(parts: tuple[tuple[str, bytes], ...], details: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        parse(TYPE, form(*parts))
    assert (caught.value.reason, caught.value.details) == ("INVALID_PARAMETER", details)


@pytest.mark.parametrize("name", ["image", "mask"])
def test_a_file_that_nobody_chose_was_not_sent(name: str) -> None:
    """Browsers send an empty file without a name for every input that was left alone."""
    shape = Shape(files=frozenset({"image", "mask"}))
    body = form((f'form-data; name="{name}"; filename=""', b""), ('form-data; name="lang"', b"zh"))
    assert parse(TYPE, body, shape) == Upload(files={}, parameters={"lang": "zh"})
    empty = form((f'form-data; name="{name}"; filename="p.png"', b""))
    assert parse(TYPE, empty, shape).files == {name: b""}, "an empty file that was chosen is one"


@given(cut=st.integers(1, 120), content=st.binary(max_size=200))
def test_slices_change_nothing(cut: int, content: bytes) -> None:
    """Wherever a slice ends: in a header, in a boundary, in the data."""
    content = content.replace(b"--xyz", b"")
    body = form(('form-data; name="image"; filename="p"', content), ('form-data; name="lang"', b"zh"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(upload, "SLICE_BYTES", cut)
        assert parse(TYPE, body) == Upload(files={"image": content}, parameters={"lang": "zh"})


BEGUN = form(IMAGE)[:-9]
HOSTILE = {
    "blanks after a boundary": form(IMAGE)[:-4] + b" " * 2_000_000 + b"\r\n",
    "blanks after the first boundary": b"--xyz" + b"\t " * 1_000_000 + BEGUN.removeprefix(b"--xyz"),
    "blanks after a boundary in the data": BEGUN + b"\r\n--xyz" + b" " * 2_000_000 + b"\r\n--xyz--\r\n",
    "boundaries that are none": BEGUN + b"\r\n--xyzq" * 250_000 + b"\r\n--xyz--\r\n",
    "boundaries that are nearly one": BEGUN + b"\r\n--xyz\r" * 250_000 + b"\r\n--xyz--\r\n",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_body_made_to_keep_the_parser_busy_is_refused_unparsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(upload, "MultipartParser")
    (limit,) = details_of(lambda: parse(TYPE, HOSTILE[name]), "BAD_MULTIPART")
    assert limit in {"max_parts", "max_padding"}


@pytest.mark.parametrize("end", [b"--\r\n", b"--", b"--" + b" \t" * 30 + b"\r\n", b"--\r\nbehind it"])
def test_as_many_parts_as_may_be_and_some_blanks_at_the_end(end: bytes) -> None:
    parts = [IMAGE, *((f'form-data; name="f{number}"', b"x") for number in range(upload.MAX_PARTS - 1))]
    assert len(parse(TYPE, form(*parts, end=end)).parameters) == upload.MAX_PARTS - 1


async def test_a_form_lets_others_have_their_turn() -> None:
    crowd = Crowd()
    body = form((IMAGE[0], bytes(2_000_000)))
    await upload.parse(TYPE, body, PHOTO_ALONE, crowd)
    assert sum(crowd.turns) >= 2 * (len(body) // upload.SLICE_BYTES), "once to be looked through, once to be parsed"


def test_names_of_entities_and_no_more_semicolons() -> None:
    """What a browser makes of a Chinese file name on a page that is not in UTF-8."""
    entities = "&#39118;" * 60
    disposition = f'form-data; name="image"; filename="{entities}.jpg"'
    assert parse(TYPE, form((disposition, IMAGE[1]))).files == {"image": IMAGE[1]}
    many = form((f'form-data; name="image"{";" * 4000}', b"x"))
    assert details_of(lambda: parse(TYPE, many), "BAD_MULTIPART") == {"max_semicolons": upload.MAX_SEMICOLONS}
    assert upload.is_supported(f"{TYPE}; charset=utf-8")
    for kind in ("multipart/form-data", "application/json"):
        assert not upload.is_supported(f"{kind}{';' * 30_000} boundary=xyz")


def in_json(text: str, **others: object) -> bytes:
    return json.dumps({"image_base64": text, **others}).encode()


PLAIN = base64.b64encode(bytes(range(256)) * 5000).decode()
LONG_TEXTS = {"plain": PLAIN, "at 76": lines(PLAIN, 76, "\n"), "at 1": lines(PLAIN[:700_000], 1, "\n")}


class Crowd(Alone):
    """Everybody else: notes how many pieces were done at once, and in how many turns."""

    def __init__(self) -> None:
        self.turns: list[int] = []

    async def turn(self, pieces: int = 1) -> None:
        self.turns.append(pieces)


async def test_a_body_is_read_in_turns() -> None:
    """One for each further piece: whoever sends the most at once waits like all others. And to be made whole."""
    pieces, crowd = iter(range(4, -1, -1)), Crowd()

    async def receive() -> Message:
        return chunk(b"x" * 65_536, more=next(pieces) > 0)

    assert len(await read_body(receive, Headers({}), 1_000_000, crowd)) == 5 * 65_536
    assert crowd.turns == [1] * 4 + [1 + 5 * 65_536 // upload.SLICE_BYTES]


@pytest.mark.parametrize("name", sorted(LONG_TEXTS))
async def test_a_photo_in_json_lets_others_have_their_turn(name: str) -> None:
    """Parsed in one go, which counts for as much as it is; decoded in pieces."""
    body, crowd = in_json(LONG_TEXTS[name]), Crowd()
    photo = (await upload.parse("application/json", body, PHOTO_ALONE, crowd)).files["image"]
    assert photo == base64.b64decode(LONG_TEXTS[name])
    parsing, *decoding = crowd.turns
    assert parsing > len(body) // upload.SLICE_BYTES
    assert len(decoding) > len(LONG_TEXTS[name]) // base64_text.PIECE_CHARACTERS


@given(
    data=st.binary(max_size=90),
    url_safe=st.booleans(),
    width=st.sampled_from([0, 1, 5, 76]),
    end=st.sampled_from(["\n", "\r\n"]),
    piece=st.integers(1, 130),
    place=st.integers(0, 10_000),
    bad=st.sampled_from(["", *" \t!é\x00,=%\n\r"]),
)
def test_where_a_text_is_cut_into_pieces_makes_no_difference(
    data: bytes, url_safe: bool, width: int, end: str, piece: int, place: int, bad: str
) -> None:
    text = (base64.urlsafe_b64encode if url_safe else base64.b64encode)(data).decode()
    text = lines(text, width, end) if width else text
    place %= len(text) + 1
    text = text[:place] + bad + text[place:]

    def outcome() -> bytes | None:
        try:
            return decode(text)
        except ApiError:
            return None

    whole = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base64_text, "PIECE_CHARACTERS", piece)
        assert outcome() == whole


@pytest.mark.parametrize(
    "others",
    [
        {"x": [{}] * 10_000},
        {"x": dict.fromkeys(map(str, range(10_001)), 0)},
        {"region": [[0]] * 10_000},
        {"x": [[[[[]]]]] * 2500},
    ],
    ids=["objects", "one object", "lists", "nested"],
)
def test_json_of_a_great_many_values_is_refused_unparsed(
    others: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edge.upload.orjson.loads", lambda _body: pytest.fail("parsed"))
    body = in_json("AAAA", **others)
    assert details_of(lambda: parse("application/json", body), "BAD_JSON") == {"max_values": 10_000}


def test_the_longest_region_fits_in_json() -> None:
    region = [[number, 0.5] for number in range(MAX_CORNERS)]
    assert parse("application/json", in_json("AAAA", region=region)).parameters == {"region": region}
    assert parse("application/json", in_json("AAAA", region=str(region))).parameters == {"region": str(region)}


@pytest.mark.parametrize(
    ("body", "details"),
    [
        (b"", {"problem": "Input is a zero-length, empty document", "line": 1, "column": 1}),
        (b'{"a": 1,\n "b": SENT}', {"problem": "unexpected character, expected a JSON value", "line": 2, "column": 7}),
        (b"[1]", {"expected": "an object"}),
        (b"null", {"expected": "an object"}),
    ],
)
def test_what_is_wrong_with_json_is_said(body: bytes, details: dict[str, Any]) -> None:
    assert details_of(lambda: parse("application/json", body), "BAD_JSON") == details


@given(before=st.text('{}[]:,"\\ue1.- \n', max_size=12), after=st.text('{}[]:,"\\ue1.- \n', max_size=12))
def test_nothing_of_a_broken_text_is_in_its_refusal(before: str, after: str) -> None:
    body = f"{before}SENTINEL{after}\0".encode()  # no JSON text holds that character
    assert "SENTINEL" not in json.dumps(details_of(lambda: parse("application/json", body), "BAD_JSON"))


def test_json_with_more_keys_than_any_call_has() -> None:
    body = json.dumps({f"key{number}": number for number in range(100)}).encode()
    assert details_of(lambda: parse("application/json", body), "BAD_JSON") == {"max_keys": 32}


def test_base64_must_be_text() -> None:
    assert reason_of(lambda: parse("application/json", b'{"image_base64": 5}')) == "INVALID_PARAMETER"


def test_json_keeps_its_types() -> None:
    found = parse("application/json; charset=utf-8", b'{"annotate": false, "x": [1]}')
    assert found == Upload(files={}, parameters={"annotate": False, "x": [1]})


def receiving(*messages: Message) -> Callable[[], Awaitable[Message]]:
    waiting = list(messages)

    async def receive() -> Message:
        return waiting.pop(0)

    return receive


def chunk(body: bytes, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def test_a_body_in_pieces() -> None:
    receive = receiving(chunk(b"ab"), chunk(b""), chunk(b"cd", more=False))
    assert await read_body(receive, Headers({}), 4, Alone()) == b"abcd"


async def test_reading_stops_where_the_limit_is_crossed() -> None:
    receive = receiving(chunk(b"abc"), chunk(b"de"))
    with pytest.raises(ApiError) as caught:
        await read_body(receive, Headers({}), 4, Alone())
    assert caught.value.details == {"size_bytes": 5, "max_bytes": 4}


async def test_a_declared_length_that_is_too_large_is_refused_unread() -> None:
    with pytest.raises(ApiError) as caught:
        await read_body(receiving(), Headers({"Content-Length": "5"}), 4, Alone())
    assert caught.value.reason == "BODY_TOO_LARGE"


@pytest.mark.parametrize(
    ("declared", "size"), [("0" * 4301 + "5", 5), ("5" + "0" * 5000, 5 * 10**18), ("0" * 5000, 0), ("", 0)]
)
async def test_a_declared_length_may_have_any_number_of_digits(declared: str, size: int) -> None:
    """Python makes no number of more than 4300."""
    headers = Headers({"Content-Length": declared})
    if size <= 4:
        assert await read_body(receiving(chunk(b"", more=False)), headers, 4, Alone()) == b""
        return
    with pytest.raises(ApiError) as caught:
        await read_body(receiving(), headers, 4, Alone())
    assert caught.value.details == {"size_bytes": size, "max_bytes": 4}


async def test_a_small_declared_length_is_not_believed() -> None:
    with pytest.raises(ApiError):
        await read_body(receiving(chunk(b"abcde", more=False)), Headers({"Content-Length": "1"}), 4, Alone())


async def test_a_client_that_leaves_half_way() -> None:
    with pytest.raises(ClientGoneError):
        await read_body(receiving(chunk(b"ab"), {"type": "http.disconnect"}), Headers({}), 4, Alone())


async def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "BODY_GRACE_S", 0.01)

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    with pytest.raises(ApiError) as caught:
        await read_body(never, Headers({}), 4, Alone())
    assert caught.value.reason == "BODY_INCOMPLETE"


async def test_a_body_that_comes_too_slowly(clock: Clock) -> None:
    """It goes on arriving all the time, and still ends: 20 bytes a second."""

    async def drips() -> Message:
        await clock.forward(1.0)
        return chunk(bytes(20))

    with pytest.raises(ApiError) as caught:
        await read_body(drips, Headers({}), 1_000_000, Alone())
    assert caught.value.reason == "BODY_INCOMPLETE"
    assert caught.value.row.http_status == 408
    assert caught.value.details["received_bytes"]


async def test_a_body_that_comes_fast_enough_may_take_longer_than_the_grace(clock: Clock) -> None:
    size, left = int(upload.BODY_GRACE_S * upload.BODY_MIN_BYTES_PER_S), 4

    async def steady() -> Message:
        nonlocal left
        left -= 1
        await clock.forward(upload.BODY_GRACE_S / 2)
        return chunk(bytes(size), more=left > 0)

    assert len(await read_body(steady, Headers({}), 4 * size, Alone())) == 4 * size


async def test_bytes_are_told_as_they_arrive_and_reading_ends_where_there_is_no_room() -> None:
    told: list[int] = []

    class Narrow(Alone):
        @override
        def take(self, count: int) -> None:
            if sum(told) + count > 5:
                raise ApiError("BUSY")
            told.append(count)

    with pytest.raises(ApiError) as caught:
        await read_body(receiving(chunk(b"abc"), chunk(b"de"), chunk(b"f")), Headers({}), 100, Narrow())
    assert (caught.value.reason, told) == ("BUSY", [3, 2])


async def test_pieces_of_all_sizes_come_together_in_order() -> None:
    sizes = [0, 1, 5000, 1, 1, 4096, 70_000, *[3] * 2000, 4095, 4097, 2]
    pieces = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    receive = receiving(*(chunk(piece) for piece in pieces), chunk(b"", more=False))
    assert await read_body(receive, Headers({}), 1_000_000, Alone()) == b"".join(pieces)


async def test_single_bytes_do_not_take_many_times_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upload, "BODY_GRACE_S", 3600.0)  # a busy machine is not what is tested
    count = 60_000
    all_came = asyncio.Event()
    left = count

    async def single() -> Message:
        nonlocal left
        left -= 1
        if left < 0:
            all_came.set()
            await asyncio.Event().wait()
        return chunk(bytes([left % 251]))

    tracemalloc.start()
    reading = asyncio.create_task(read_body(single, Headers({}), 1_000_000, Alone()))
    await all_came.wait()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    reading.cancel()
    assert held < 2 * count
