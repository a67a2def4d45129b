"""Who a request comes from, whatever its header says."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
import structlog

from edge.peers import MAX_HOPS, client_address
from tests.edge.rest import FakeMesh, Rest

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "client"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),  # whoever is not trusted speaks for himself
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.7, 203.0.113.9"], "203.0.113.9"),  # what is left of it may be invented
        ("10.0.0.1", ["198.51.100.7, 203.0.113.9, 10.9.9.9,10.8.8.8"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.7", "203.0.113.9", "10.9.9.9"], "203.0.113.9"),
        ("10.0.0.1", ["10.2.2.2, 10.3.3.3"], "10.2.2.2"),
        ("10.0.0.1", ["203.0.113.9, unknown, 10.3.3.3"], "10.3.3.3"),
        ("10.0.0.1", ["203.0.113.9,"], "10.0.0.1"),
        ("10.0.0.1", ["<script>"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9:51234"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:443"], "2001:db8::1"),
        ("fd00::1", ["2001:DB8:0::1"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["::ffff:203.0.113.9"], "203.0.113.9"),
        ("", ["203.0.113.9"], ""),
    ],
)
def test_the_nearest_that_is_not_trusted(peer: str, forwarded_for: list[str], client: str) -> None:
    assert client_address(peer, forwarded_for, TRUSTED) == client


def test_of_a_great_many_trusted_hops_the_nearest_are_read() -> None:
    hops = [f"10.{number // 256}.{number % 256}.1" for number in range(8_000)]
    assert client_address("10.0.0.1", [", ".join(hops)], TRUSTED) == hops[-MAX_HOPS]


def test_without_trusted_proxies_the_header_means_nothing() -> None:
    assert client_address("10.0.0.1", ["203.0.113.9"], ()) == "10.0.0.1"


async def test_the_client_is_told_to_the_pool_and_to_no_log(
    rest: Rest, mesh: FakeMesh, capfd: pytest.CaptureFixture[str]
) -> None:
    with structlog.testing.capture_logs() as logs:
        await rest.measure(headers={"X-Forwarded-For": "203.0.113.9"})
    assert mesh.calls[-1].client == "127.0.0.1"
    assert b"127.0.0.1" not in mesh.request.SerializeToString()
    await rest.stop()
    said = str(logs) + "".join(capfd.readouterr()) + rest.settings.request_log.path.read_text()
    assert "127.0.0.1" not in said
    assert "203.0.113.9" not in said
