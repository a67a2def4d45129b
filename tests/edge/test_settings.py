"""The configuration file: complete, checked, silent about secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from edge.settings import ConfigError, Settings, check_tls_files, parse, read

EXAMPLE = Path(__file__).parents[2] / "edge_config.example.json"
OWN = {"shared_password": "SENTINEL-1", "admin_tokens": ["SENTINEL-sixteen"]}
"""What has to be written in the place of the example's placeholders."""
SMALL: dict[str, Any] = {"workers": ["127.0.0.1:28187"], "shared_password": "SENTINEL-1"}


def settings(**changes: Any) -> Settings:
    return parse(json.dumps({**SMALL, **changes}).encode())


def example() -> Settings:
    """The example with secrets of one's own."""
    return parse(json.dumps(json.loads(EXAMPLE.read_text()) | OWN).encode())


def complaint(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        settings(**changes)
    return str(caught.value)


def test_the_example_is_good_and_names_every_key() -> None:
    written = json.loads(EXAMPLE.read_text())

    def same_keys(written: Any, section: Any) -> None:
        names = set(type(section).model_fields) if isinstance(section, BaseModel) else set(section.__dataclass_fields__)
        assert set(written) == names
        for name in names:
            value = getattr(section, name)
            if isinstance(value, BaseModel) or hasattr(value, "__dataclass_fields__"):
                same_keys(written[name], value)

    same_keys(written, example())


def test_the_examples_own_secrets_are_refused_each_by_name() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(EXAMPLE.read_bytes())
    advice = "is still the example's placeholder: write one of your own"
    assert str(caught.value).splitlines() == [f"shared_password: {advice}", f"admin_tokens.0: {advice}"]
    assert complaint(shared_password="change-me") == f"shared_password: {advice}"


def test_the_example_shows_the_defaults() -> None:
    shown, small = example(), settings()
    for name in (
        "health_check",
        "dispatch",
        "limits",
        "static",
        "features",
        "local_vision",
        "docs",
        "console",
        "request_log",
        "metrics",
        "tracing",
        "tls",
    ):
        assert getattr(shown, name) == getattr(small, name), name


@pytest.mark.parametrize("url", ["https://llm.example/v1/", "http://127.0.0.1:8000/v1", "http://[::1]:8000/v1"])
def test_photos_leave_over_https_or_not_this_machine(url: str) -> None:
    features = settings(features={"base_url": url, "model": "eyes", "api_key": "SENTINEL"}).features
    assert features.base_url == url.rstrip("/")
    assert "SENTINEL" not in repr(features)


def test_two_keys_are_enough() -> None:
    loaded = settings()
    assert (loaded.host, loaded.port) == ("127.0.0.1", 8080)
    assert loaded.picture_base_url == "http://127.0.0.1:8080"
    assert loaded.pool().workers == ("127.0.0.1:28187",)


def test_workers_may_be_names() -> None:
    name = "dns:///workers.example:28187"
    loaded = settings(workers=[name], worker_tls={"insecure": True}, dispatch={"spill_after_seconds": 2})
    assert loaded.pool().workers == (name,)
    assert loaded.pool().dispatch.spill_after_seconds == 2


def test_passwords_show_nowhere() -> None:
    loaded = settings(admin_tokens=["SENTINEL-sixteen"])
    assert "SENTINEL" not in repr(loaded) + str(loaded) + loaded.model_dump_json()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"healthcheck": {}}, "healthcheck: there is no such key"),
        ({"health_check": {"intervall": 1}}, "health_check.intervall: there is no such key"),
        ({"limits": {"max_pixel": 1}}, "limits.max_pixel: there is no such key"),
        ({"worker_tls": {"verify": True}}, "worker_tls.verify: there is no such key"),
        ({"dispatch": {"per_worker_concurrency": 2}}, "dispatch.per_worker_concurrency: 2 must be 1"),
        ({"health_check": {"timeout_seconds": 0}}, "health_check.timeout_seconds"),
        ({"health_check": {"timeout_seconds": "3"}}, "health_check.timeout_seconds"),
        ({"limits": {"max_body_bytes": -1}}, "limits.max_body_bytes"),
        ({"limits": {"max_body_bytes": 64 * 1024 * 1024}}, "limits.max_body_bytes"),  # more than a worker takes
        ({"limits": {"max_body_bytes": 2}}, "limits.max_body_bytes: must be a whole number of bytes, at least 65536"),
        ({"static": {"max_bytes": 10}}, "static.max_bytes: must be a whole number of bytes, at least 1048576"),
        (
            {"static": {"max_age_hours": 259_200}},
            "static.max_age_hours: must be a number of hours, above 0, at most 87600",
        ),
        (
            {"health_check": {"timeout_seconds": 3000}},
            "health_check.timeout_seconds: must be a number of seconds, above 0, at most 60",
        ),
        ({"limits": {"max_output_side": 8192}}, "limits.max_output_side"),
        ({"limits": {"rare_formats": ["GIF"]}}, "limits.rare_formats"),
        ({"workers": []}, "workers: at least one"),
        ({"workers": ["http://10.0.0.1:5"]}, "have no http://"),
        ({"workers": ["127.0.0.1:1", "127.0.0.1:1"]}, "127.0.0.1:1 stands there 2 times"),
        ({"workers": ["10.0.0.11:28187"]}, "not on this machine"),
        ({"workers": ["dns:///workers.example:28187"]}, "dns:///workers.example:28187 is not on this machine"),
        ({"workers": ["dns:workers.example:28187"]}, "write dns:///workers.example:28187"),
        ({"dispatch": {"spill_after_seconds": -1}}, "dispatch.spill_after_seconds"),
        ({"primary_workers": ["127.0.0.1:9"]}, "127.0.0.1:9 is not in workers"),
        ({"listen": "127.0.0.1"}, "listen: must be host:port"),
        ({"listen": "http://127.0.0.1:1"}, "listen: must be host:port"),
        ({"listen": "127.0.0.1:99999"}, "listen: must be host:port"),
        ({"listen": "0.0.0.0:8080"}, "public_base_url: must be given"),
        ({"listen": "0.0.0.0:8080", "public_base_url": "https://a.example"}, "plain HTTP off loopback"),
        ({"public_base_url": "http://face.example"}, "pictures of patients over plain HTTP"),
        ({"public_base_url": "face.example"}, "public_base_url: must be http(s)://"),
        ({"public_base_url": "https://a.example/?x=1"}, "public_base_url: must be http(s)://"),
        ({"tls": {"cert": "a.pem"}}, "tls: cert and key belong together"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "trusted_proxies.0: must be a network such as 10.0.0.0/8"),
        ({"trusted_proxies": ["proxy.example"]}, "trusted_proxies.0: must be a network"),
        ({"trusted_proxies": [True]}, "trusted_proxies.0: must be a network"),
        ({"dispatch": {"spill_after_seconds": "1"}}, "dispatch.spill_after_seconds"),
        ({"static": {"store_url": "s3://key:secret@bucket"}}, "static.store_url: must be s3://bucket"),
        ({"static": {"store_url": "s3://bucket/a/../b"}}, "static.store_url: must be s3://bucket"),
        ({"static": {"store_url": "s3://bucket?X-Amz-Signature=1"}}, "static.store_url: must be s3://bucket"),
        ({"static": {"store_url": "file:///pictures"}}, "static.store_url: must be s3://bucket"),
        ({"static": {"store_url": "s3://bucket", "shared": True}}, "static: shared is said of dir"),
        *(
            ({"public_base_url": url}, "public_base_url: must be http(s)://")
            for url in (
                "https://:SENTINEL@face.example",
                "https://@face.example",
                "https://face.example:99999",
                "https://face.example:0",
                "https://face .example",
                "https://face\n.example",
                "https://xn--/v1",
                "https://a..example",
                f"https://{'a' * 70}.example",
                "https://[::1",
            )
        ),
        *(
            ({"features": {"base_url": "https://a.example", "model": "m", "request": {key: 1}}}, f"request: {key}: ")
            for key in ("model", "messages", "response_format", "stream")
        ),
        ({"features": {"api_key": "SENTINEL"}}, "features: api_key means nothing without base_url"),
        ({"features": {"base_url": "https://llm.example/v1"}}, "features: base_url and model belong together"),
        ({"features": {"model": "eyes"}}, "features: base_url and model belong together"),
        ({"features": {"base_url": "http://llm.example/v1", "model": "eyes"}}, "features.base_url: must be https"),
        (
            {"features": {"base_url": "https://user:SENTINEL@llm.example", "model": "eyes"}},
            "features.base_url: must be",
        ),
        ({"features": {"base_url": "ftp://llm.example", "model": "eyes"}}, "features.base_url: must be http(s)://"),
        (
            {"features": {"base_url": "https://llm.example/v1", "model": "eyes", "api_key": "SENTINEL\n"}},
            "features.api_key: only printable ASCII",
        ),
        ({"local_vision": {"max_waiting": -1}}, "local_vision.max_waiting"),
        ({"local_vision": {"gpu": True}}, "local_vision.gpu: there is no such key"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str) -> None:
    assert words in complaint(**changes)
    assert "SENTINEL" not in complaint(**changes)


@pytest.mark.parametrize("password", ["café-SENTINEL", "SENTINEL\n", " SENTINEL", "密码SENTINEL", "SENT\x7fINEL"])
@pytest.mark.parametrize("key", ["shared_password", "admin_tokens"])
def test_passwords_that_no_header_can_carry(password: str, key: str) -> None:
    text = complaint(**{key: password if key == "shared_password" else [password * 2]})
    assert text.startswith(key)
    assert "carry nothing else" in text or "carries nothing else" in text or "drops it" in text
    assert "SENT" not in text


def test_admin_tokens_cannot_be_guessed() -> None:
    assert settings(admin_tokens=["x" * 16]).admin_tokens[0].get_secret_value() == "x" * 16
    assert complaint(admin_tokens=["x" * 16, "SENTINEL-short"]) == "admin_tokens.1: must have at least 16 characters"
    same = "SENTINEL-of-everybody"
    text = complaint(shared_password=same, admin_tokens=[same])
    assert text == "admin_tokens: must differ from shared_password, which every worker knows"


def test_an_empty_password() -> None:
    assert "shared_password: is empty" in complaint(shared_password="")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"workers": ["127', "not JSON: line 1"),
        (b"[]", "must be a JSON object"),
        (b"", "the file is empty"),
        (b"\xff", "not JSON"),
    ],
)
def test_files_that_are_no_configuration(text: bytes, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert str(caught.value).startswith(words)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read(tmp_path / "none.json")


def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(ConfigError, match=r"^tls: .*cert\.pem: No such file"):
        check_tls_files(settings(tls={"cert": str(tmp_path / "cert.pem"), "key": str(tmp_path / "key.pem")}).tls)
    check_tls_files(settings().tls)


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({}, []),
        ({"admin_tokens": ["SENTINEL-1"]}, ["admin_tokens.0"]),
        ({"typo": 1, "log_level": "x"}, ["typo", "log_level"]),
    ],
)
def test_contradictions_are_named_whatever_else_is_wrong(changes: dict[str, Any], keys: list[str]) -> None:
    said = complaint(listen="0.0.0.0:8080", workers=["10.0.0.11:28187"], **changes).splitlines()
    assert sorted(line.partition(":")[0] for line in said) == sorted([*keys, "workers", "public_base_url", "listen"])


@pytest.mark.parametrize(
    "changes",
    [
        {"listen": "0.0.0.0:8080", "public_base_url": "nonsense", "tls": {"insecure": True}},
        {"listen": "0.0.0.0:8080", "public_base_url": "https://a.example", "tls": {"insecure": 3}},
        {"workers": ["10.0.0.11:28187"], "worker_tls": {"insecure": "yes"}},
        {"workers": "10.0.0.11:28187", "primary_workers": ["10.0.0.11:28187"]},
        {"shared_password": "", "admin_tokens": ["SENTINEL-sixteen"]},
    ],
)
def test_what_is_wrong_by_itself_brings_no_complaint_about_another_key(changes: dict[str, Any]) -> None:
    assert len(complaint(**changes).splitlines()) == 1


def test_missing_keys_are_all_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(b"{}")
    assert str(caught.value).splitlines() == ["workers: must be given", "shared_password: must be given"]


@pytest.mark.parametrize(
    ("changes", "base"),
    [
        ({"public_base_url": "https://face.example/x/"}, "https://face.example/x"),
        ({"listen": "[::1]:8080"}, "http://[::1]:8080"),
        ({"tls": {"cert": "c.pem", "key": "k.pem"}}, "https://127.0.0.1:8080"),
        (
            {"listen": "0.0.0.0:80", "tls": {"insecure": True}, "public_base_url": "http://a.example"},
            "http://a.example",
        ),
    ],
)
def test_what_picture_urls_begin_with(changes: dict[str, Any], base: str) -> None:
    assert settings(**changes).picture_base_url == base
