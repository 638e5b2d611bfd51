"""What the recording server answers: ids that follow from the request, and small exact results.

Nothing here is random and nothing depends on arrival order, so that a second recording gives the same
files. Numbers are multiples of 1/8 and therefore exact in float32 and in JSON.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict

import numpy as np
import zstandard
from tinker.proto import tinker_public_pb2 as pb

from .rest_answers import rest_answer
from .server import Answer, Exchange

CLONE_SPAN = 1_000_000_000
# Beyond this many datums the outputs would only fill the fixture.
MAX_DATUMS_WITH_OUTPUTS = 8
BASE_MODEL = "Qwen/Qwen3-8B"


class Answers:
    def __init__(self, config: dict[str, object], dynamic_config: dict[str, object]):
        self.config = config
        self.dynamic_config = dynamic_config
        # Answers to give first, by path ("asample") or by poll ("retrieve_future <request id>").
        self.scripted: dict[str, list[Answer]] = defaultdict(list)
        self.weights_info: dict[str, object] = {"base_model": BASE_MODEL, "is_lora": True, "lora_rank": 16}
        self._lock = threading.Condition()
        self._sessions = 0
        self._joined = 0
        self._results: dict[str, Answer] = {}
        self._finished: list[str] = []
        self.closing = False

    def __call__(self, exchange: Exchange) -> Answer:
        key = exchange.path
        body = json.loads(exchange.body) if _is_json(exchange) else {}
        if key == "retrieve_future":
            key = f"retrieve_future {body['request_id']}"
        with self._lock:
            if self.scripted[key]:
                return self.scripted[key].pop(0)
        handler = getattr(type(self), f"_{exchange.path.replace('/', '_')}", None)
        if handler is None:
            return rest_answer(exchange, self.weights_info)
        return handler(self, exchange if exchange.path == "forward_backward" else body)

    # One method per path, named after it.

    def _client_config(self, body: dict) -> Answer:
        return Answer(json=self.config)

    def _client_dynamic_config(self, body: dict) -> Answer:
        return Answer(json=self.dynamic_config)

    def _create_session(self, body: dict) -> Answer:
        with self._lock:
            self._sessions += 1
            return Answer(json={"type": "create_session", "session_id": f"session-{self._sessions}"})

    def _session_heartbeat(self, body: dict) -> Answer:
        return Answer(json={"type": "session_heartbeat"})

    def _telemetry(self, body: dict) -> Answer:
        return Answer(json={"status": "accepted"})

    def _cancel_future(self, body: dict) -> Answer:
        return Answer(status=204)

    def _create_model(self, body: dict) -> Answer:
        model_id = f"{body['session_id']}:train:{body['model_seq_id']}"
        return self._promise(f"{model_id}:create", {"model_id": model_id, "type": "create_model"})

    def _load_weights(self, body: dict) -> Answer:
        model_id = body.get("model_id") or f"{body['session_id']}:train:{body['model_seq_id']}"
        result = {"path": body["path"], "model_id": model_id, "type": "load_weights"}
        return self._promise(f"{model_id}:{body.get('seq_id', 'load')}", result)

    def _get_info(self, body: dict) -> Answer:
        data = {"arch": "qwen3", "model_name": BASE_MODEL, "tokenizer_id": f"{BASE_MODEL}:main"}
        info = {"type": "get_info", "model_id": body["model_id"], "model_data": data, "is_lora": True, "lora_rank": 32}
        return Answer(json={**info, "optimizer_config": {"type": "adamw"}})

    def _forward_backward(self, exchange: Exchange) -> Answer:
        body = exchange.body
        if exchange.headers.get("content-encoding") == "zstd":
            body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
        request = pb.ForwardBackwardRequest.FromString(body)
        output = forward_backward_output(request).SerializeToString(deterministic=True)
        return self._promise(f"{request.model_id}:{request.seq_id}", Answer(protobuf=output))

    def _optim_step(self, body: dict) -> Answer:
        return self._promise(_request_id(body), {"metrics": {"grad_norm:mean": 0.5}})

    def _save_weights(self, body: dict) -> Answer:
        path = f"tinker://{body['model_id']}/weights/{body['path']}"
        return self._promise(_request_id(body), {"path": path, "type": "save_weights"})

    def _save_weights_for_sampler(self, body: dict) -> Answer:
        if "path" in body:
            result = {"path": f"tinker://{body['model_id']}/sampler_weights/{body['path']}"}
        else:
            session = body["model_id"].split(":")[0]
            result = {"sampling_session_id": f"{session}:sample:{body['sampling_session_seq_id']}"}
        return self._promise(_request_id(body), {**result, "type": "save_weights_for_sampler"})

    def _save_weights_external(self, body: dict) -> Answer:
        path = f"tinker://{body['model_id']}/external_weights/{body['path']}"
        return self._promise(_request_id(body), {"path": path, "type": "save_weights_external"})

    def _create_custom_loss(self, body: dict) -> Answer:
        loss_id = f"{body['session_id']}:loss:{body['custom_loss_seq_id']}"
        return self._promise(f"{loss_id}:create", {"loss_id": loss_id, "type": "create_custom_loss"})

    def _create_sampling_session(self, body: dict) -> Answer:
        sampler = f"{body['session_id']}:sample:{body['sampling_session_seq_id']}"
        return Answer(json={"type": "create_sampling_session", "sampling_session_id": sampler})

    def _join_sampling_session(self, body: dict) -> Answer:
        with self._lock:
            self._joined += 1
            return Answer(json={"type": "join_sampling_session", "client_counter": self._joined})

    def _asample(self, body: dict) -> Answer:
        request_id = f"{body['sampling_session_id']}:{body['seq_id']}"
        output = sample_response(body).SerializeToString(deterministic=True)
        answer = self._promise(request_id, Answer(protobuf=output))
        answer.json["sample_sequence_ids"] = [f"{request_id}:{n}" for n in range(body["num_samples"])]
        with self._lock:
            self._finished.append(request_id)
            self._lock.notify_all()
        return answer

    def _retrieve_future(self, body: dict) -> Answer:
        with self._lock:
            return self._results[body["request_id"]]

    def _retrieve_futures(self, body: dict) -> Answer:
        # The cursor is the number of completions told so far, as opaque to the client as any other.
        cursor = body["prev_cursor"]
        with self._lock:
            self._lock.wait_for(lambda: len(self._finished) > cursor or self.closing, timeout=20)
            told, cursor = self._finished[cursor:], len(self._finished)
        completions = [
            {"state": "finished", "request_id": request_id, "response_payload_uncompressed_size": 64}
            for request_id in told
        ]
        return Answer(json={"completions": completions, "cursor": cursor})

    def _promise(self, request_id: str, result: object) -> Answer:
        with self._lock:
            self._results[request_id] = result if isinstance(result, Answer) else Answer(json=result)
        return Answer(json={"request_id": request_id})

    def release(self) -> None:
        """Lets held long polls go, so that a scenario ends at once."""
        with self._lock:
            self.closing = True
            self._lock.notify_all()


def _is_json(exchange: Exchange) -> bool:
    return bool(exchange.body) and "json" in exchange.headers.get("content-type", "")


def _request_id(body: dict) -> str:
    return f"{body['model_id']}:{body['seq_id']}"


def _descending(count: int) -> np.ndarray:
    return -(np.arange(count) + 1).astype(np.float32) / 8


def forward_backward_output(request: pb.ForwardBackwardRequest) -> pb.ForwardBackwardOutput:
    output = pb.ForwardBackwardOutput(loss_fn_output_type="recorded:ArrayRecord")
    count = len(request.data)
    output.metrics["loss:sum"] = count / 2
    output.metrics["loss:mean"] = request.seq_id / 4
    output.metrics["clock_cycle:unique"] = float(request.seq_id)
    record = output.loss_fn_outputs.add(type_tag="ArrayRecord", num_datums=count)
    if count <= MAX_DATUMS_WITH_OUTPUTS:
        rows = [_descending(_target_count(datum)) for datum in request.data]
        field = record.fields["logprobs"]
        field.dtype = pb.DTYPE_FLOAT32
        field.data = b"".join(row.tobytes() for row in rows)
        field.offsets = np.cumsum([0, *(row.nbytes for row in rows)]).astype(np.int64).tobytes()
    return output


def _target_count(datum: pb.Datum) -> int:
    shape = datum.loss_fn_inputs["target_tokens"].shape if "target_tokens" in datum.loss_fn_inputs else []
    return int(np.prod(shape)) if shape else 0


def sample_response(body: dict) -> pb.SampleResponse:
    response = pb.SampleResponse()
    length = sum(len(chunk.get("tokens", ())) for chunk in body["prompt"]["chunks"])
    for index in range(body["num_samples"]):
        reason = pb.STOP_REASON_LENGTH if index % 2 else pb.STOP_REASON_STOP
        sequence = response.sequences.add(stop_reason=reason)
        sequence.tokens = np.array([11 + index, 12, 13], dtype=np.int32).tobytes()
        sequence.logprobs = _descending(3).tobytes()
        if body["topk_sample_logprobs"]:
            _top_k(sequence.topk_sampled_logprobs, 3, body["topk_sample_logprobs"])
    if body.get("prompt_logprobs"):
        logprobs = _descending(length)
        logprobs[: max(1, length - body.get("prompt_logprobs_last_n", length))] = np.nan
        response.prompt_logprobs = logprobs.tobytes()
    if body["topk_prompt_logprobs"]:
        _top_k(response.topk_prompt_logprobs, length, body["topk_prompt_logprobs"])
    if (target := body.get("target_prompt_logprobs")) is not None:
        tensor = response.target_prompt_logprobs
        tensor.dtype = pb.DTYPE_FLOAT32
        tensor.shape.extend(target["shape"])
        values = _descending(len(target["data"])).tobytes()
        if "sparse_crow_indices" in target:
            tensor.sparse_csr.values = values
            tensor.sparse_csr.crow_indices = np.array(target["sparse_crow_indices"], dtype=np.int64).tobytes()
            tensor.sparse_csr.col_indices = np.array(target["sparse_col_indices"], dtype=np.int64).tobytes()
        else:
            tensor.dense = values
    if (k := body["prompt_alt_tokens_k"]) > 0:
        for tensor, dtype, values in (
            (response.prompt_alt_tokens.tokens, pb.DTYPE_INT64, np.arange((length - 1) * k, dtype=np.int64)),
            (response.prompt_alt_tokens.logprobs, pb.DTYPE_FLOAT32, _descending((length - 1) * k)),
        ):
            tensor.dtype = dtype
            tensor.shape.extend([length - 1, k])
            tensor.dense = values.tobytes()
    response.prompt_cache_hit_tokens = 2
    return response


def _top_k(message: pb.TopkLogprobs, length: int, k: int) -> None:
    message.k, message.length = k, length
    message.token_ids = np.arange(1, length * k + 1, dtype=np.int32).tobytes()
    message.logprobs = _descending(length * k).tobytes()
