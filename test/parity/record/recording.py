"""One scenario: a server, the clients a scenario makes, and the fixture that comes out."""

from __future__ import annotations

import os
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Callable, Iterator

import orjson
import tinker
from tinker.proto import tinker_public_pb2 as pb

from . import fixture
from .answers import Answers
from .plain import plain
from .rest_answers import JWT
from .server import Exchange, RecordingServer

API_KEY = "tml-recorded-key"
WEIGHTS_TOKEN = "tml-other-account"


class Recording:
    def __init__(self, config: dict[str, object], dynamic_config: dict[str, object]):
        self.answers = Answers(config, dynamic_config)
        self.server = RecordingServer(self.answers, orjson.dumps)
        self.results: list[dict[str, object]] = []
        self.extra: dict[str, object] = {}
        # Where the number of polls depends on time only.
        self.forget_polls = False
        self._services: list[tinker.ServiceClient] = []

    @property
    def base_url(self) -> str:
        return self.server.base_url

    def service(self, **options: object) -> tinker.ServiceClient:
        service = tinker.ServiceClient(base_url=self.base_url, api_key=API_KEY, **options)
        self._services.append(service)
        return service

    def trainer(self, **options: object) -> tinker.TrainingClient:
        return self.service().create_lora_training_client("Qwen/Qwen3-8B", **options)

    def sampler(self, **options: object) -> tinker.SamplingClient:
        return self.service().create_sampling_client(base_model="Qwen/Qwen3-8B", **options)

    def result(self, call: str, value: object) -> object:
        """Notes what a call gave; a future is waited for, an exception raised by it is the result."""
        try:
            if isinstance(value, (Future, tinker.APIFuture)):
                value = value.result()
        except Exception as error:
            value = error
        self.results.append({"call": call, "value": plain(value)})
        return value

    def seen(self, path: str) -> list[Exchange]:
        return [exchange for exchange in self.server.exchanges if exchange.path == path]

    def close(self) -> None:
        self.answers.release()
        for service in self._services:
            service.close("success").result()
        self.server.close()


@dataclass
class Scenario:
    name: str
    how: str
    run: Callable[[Recording], None]
    config: dict[str, object] = field(default_factory=dict)
    dynamic_config: dict[str, object] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    # Paths whose requests race each other: written in the order of their seq ids. Of chunks the one that
    # arrived last stays last.
    racing: tuple[str, ...] = ()

    def record(self) -> dict[str, object]:
        with _environment(self.env):
            recording = Recording(self.config, self.dynamic_config)
            try:
                self.run(recording)
                exchanges = list(recording.server.exchanges)
            finally:
                recording.close()
        if recording.server.faults:
            raise ExceptionGroup(f"scenario {self.name}", recording.server.faults)
        names = {recording.base_url: "<base url>", API_KEY: "<api key>", JWT: "<jwt>", WEIGHTS_TOKEN: "<weights token>"}
        normaliser = fixture.Normaliser(names)
        polls: dict[str, list[object]] = {}
        ordered: list[Exchange] = []
        for exchange in exchanges:
            if exchange.path == "retrieve_future" and recording.forget_polls:
                continue
            if exchange.path == "retrieve_future":
                request_id = orjson.loads(exchange.body)["request_id"]
                polls.setdefault(request_id, []).append(fixture.exchange_json(exchange, normaliser))
            else:
                ordered.append(exchange)
        for path in self.racing:
            ordered = _sort_racing(ordered, path)
        return {
            "scenario": self.name,
            "recorded": fixture.header("record_sdk.py", self.how),
            **({"racing": list(self.racing)} if self.racing else {}),
            "exchanges": [fixture.exchange_json(exchange, normaliser) for exchange in ordered],
            "polls": dict(sorted(polls.items())),
            "results": normaliser.value(recording.results),
            **normaliser.value(recording.extra),
        }


def _sort_racing(exchanges: list[Exchange], path: str) -> list[Exchange]:
    at = [index for index, exchange in enumerate(exchanges) if exchange.path == path]
    racing = [exchanges[index] for index in at]
    last = racing.pop() if path == "forward_backward" else None
    racing.sort(key=_number)
    result = list(exchanges)
    for index, exchange in zip(at, [*racing, *([last] if last else [])], strict=True):
        result[index] = exchange
    return result


def _number(exchange: Exchange) -> tuple[str, int]:
    if exchange.path == "forward_backward":
        request = pb.ForwardBackwardRequest.FromString(exchange.body)
        return request.model_id, request.seq_id
    body = orjson.loads(exchange.body)
    return body["sampling_session_id"], body["seq_id"]


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith(("TINKER_", "CLOUDFLARE_"))]:
        del os.environ[name]
    os.environ.update({"TINKER_TELEMETRY": "0", **changes})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


SCENARIOS: list[Scenario] = []


def scenario(name: str, how: str, **options: object) -> Callable[[Callable[[Recording], None]], None]:
    def register(run: Callable[[Recording], None]) -> None:
        SCENARIOS.append(Scenario(name, how, run, **options))

    return register
