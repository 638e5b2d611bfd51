"""An HTTP server that answers the Tinker protocol from a script and writes down what it was asked.

One server per scenario, on its own port, so that a late heartbeat of one client never lands in the
recording of another. It refuses nothing: an unknown path gets an empty JSON object.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable
from urllib.parse import parse_qsl, urlsplit

# A path prefix as the hosted service has one, so that the recording shows that it survives.
PREFIX = "/services/recorded"


@dataclass
class Answer:
    status: int = 200
    json: object = None
    protobuf: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Exchange:
    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes
    at: float
    answer: Answer | None = None


class RecordingServer:
    """Starts at once; `exchanges` grows in the order in which requests were fully read."""

    def __init__(self, respond: Callable[[Exchange], Answer], encode: Callable[[object], bytes]):
        self.exchanges: list[Exchange] = []
        # Faults of the script itself; the client sees them as 500.
        self.faults: list[Exception] = []
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _handle(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                url = urlsplit(self.path)
                exchange = Exchange(
                    method=self.command,
                    path=url.path.removeprefix(PREFIX).removeprefix("/api/v1/"),
                    query=parse_qsl(url.query, keep_blank_values=True),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=body,
                    at=time.monotonic(),
                )
                with outer._lock:
                    outer.exchanges.append(exchange)
                try:
                    answer = exchange.answer = respond(exchange)
                except Exception as fault:
                    outer.faults.append(fault)
                    answer = Answer(status=500, json={"detail": repr(fault)})
                if answer.protobuf is not None:
                    payload, content_type = answer.protobuf, "application/x-protobuf"
                elif answer.status == 204:
                    payload, content_type = b"", ""
                else:
                    payload, content_type = encode(answer.json), "application/json"
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                if content_type:
                    self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                self.wfile.write(payload)

            do_GET = do_POST = do_PUT = do_DELETE = _handle

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                del request, client_address  # a client that hangs up is part of the scenarios

        self._server = Server(("127.0.0.1", 0), Handler)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}{PREFIX}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
