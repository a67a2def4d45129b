"""An edge that has something to say to every request that the document allows, and schemathesis to make them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from google.protobuf.message import Message
from hair.analysis.v1 import common_pb2, growth_pb2, hairlines_pb2, masks_pb2, measure_pb2

from edge.calls import Call, Outcome
from edge.rate_limit import Policy
from edge.translate import is_map, value_field
from edge.words import WORDS
from tests.edge.local.engines import ScriptedEngine
from tests.edge.rest import ANNOTATED, EJECTED, FakeMesh, Rest, endpoint, grown_region, grown_styles, serving

ADMIN_TOKEN = "token-of-an-operator-1"


def fill(message: Message) -> None:
    """Give every field of a message something to say, pictures and messages inside included; lists get one entry."""
    descriptor: Any = message.DESCRIPTOR
    for field in descriptor.fields:
        one: object = "text" if value_field(field).type == field.TYPE_STRING else 1
        if field in WORDS:
            one = next(iter(WORDS[field].by_name))
        value = getattr(message, field.name)
        if is_map(field):
            value["name"] = one
        elif field.message_type:
            inside = value.add() if field.is_repeated else value
            if isinstance(inside, common_pb2.Image):
                inside.data = ANNOTATED
            else:
                fill(inside)
        elif field.is_repeated:
            value.append(one)
        else:
            setattr(message, field.name, one)


class TalkativeMesh(FakeMesh):
    """Answers every call with everything it could say."""

    def __init__(self) -> None:
        super().__init__(endpoints=(endpoint(), EJECTED))
        style, region = growth_pb2.StyleResult(), growth_pb2.RegionResult()
        plain = measure_pb2.MeasureResponse, hairlines_pb2.DesignHairlinesResponse, masks_pb2.SegmentFaceResponse
        measured, designed, masked = (kind() for kind in plain)
        for message in (style, region, measured, designed, masked):
            fill(message)
        self._answers: dict[str, tuple[Message, ...]] = {
            "Measure": (measured,),
            "DesignHairlines": (designed,),
            "SegmentFace": (masked,),
            "GrowStyles": grown_styles(style),
            "GrowRegion": grown_region(region),
        }

    async def call(self, call: Call) -> Outcome:
        """At once."""
        self.response, *others = self._answers[call.method]
        self.results = (self.response, *others) if others else ()
        self.calls.clear()  # hours of them
        return await super().call(call)


@asynccontextmanager
async def talkative_edge(folder: Path) -> AsyncIterator[Rest]:
    """Serve one. It bears with wrong tokens: refusing to look at any after some would hide what else there is."""
    patient = Policy("wrong-tokens", per_minute=1e9, burst=10**9)
    with mock.patch("edge.secrets.WRONG_TOKENS", patient):
        async with serving(
            folder, TalkativeMesh(), load_local=ScriptedEngine().load, admin_tokens=[ADMIN_TOKEN]
        ) as rest:
            yield rest
