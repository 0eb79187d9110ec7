"""A real HTTP server in a thread, which plays the failures that it is told to, and otherwise a toy decision service."""

import json
import threading
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

WAIT = 20.0  # seconds until a test that waits for a fact gives up

NODE = {"name": "kettle", "mean": 0.5, "deviation": 0.1, "observed_mean": None, "decisions": 0}


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.content) if self.content else None


class Answer(NamedTuple):
    """Answer with this, without doing anything."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = MappingProxyType({})


def problem(code, status, headers=None, **fields):
    """An answer in the shape of RFC 9457."""
    found = {"type": f"urn:bough:problem:{code}", "title": "A title", "status": status, "detail": "a detail", **fields}
    return Answer(status, found, {"content-type": "application/problem+json", **(headers or {})})


# what else a request can meet
DROPPED = "the connection closes before anything is done"
DONE_DROPPED = "it is done, and the connection closes without an answer"
DONE_HALF = "it is done, and the connection closes in the middle of the answer"
DONE_SILENT = "it is done, and no answer comes"
GARBAGE = "what comes is not HTTP"


class ToyService:
    """Decisions and rewards by id, as the service keeps them: the same again is answered as before."""

    def __init__(self):
        self.decisions, self.rewards = {}, {}
        self.lock = threading.Lock()

    def handle(self, request):
        last = request.path.rsplit("/", 1)[-1]
        known = getattr(self, f"_{request.method.lower()}_{last}", None)
        if known is not None:
            with self.lock:
                return known(request)
        if request.method == "GET":
            return Answer(200, self._looked_at(last))
        if last in ("activate", "cancel", "retract"):
            return Answer(200, {"decision_id": request.body["decision_id"], "status": last, "replayed": False})
        return Answer(200, {"seq": 1, "model_version": 2, "status": "started", "estimates": []})

    def _looked_at(self, last):
        lists = {"nodes": [NODE], "outcomes": [], "node": {"children": []}, "sentence": "", "decisions": [3]}
        return {**lists, "status": "ok", "version": "0.1.0", "config": {"mode": "learn"}, "a newer field": last}

    def _get_export(self, _):
        return Answer(200, b'{"decision_id": "d1"}\n' * 1000, {"content-type": "application/x-ndjson"})

    def _post_decide(self, request):
        asked = request.body
        replayed = asked["decision_id"] in self.decisions
        self.decisions.setdefault(asked["decision_id"], asked)
        chosen = {"action": "kettle"} if asked.get("k") is None else {"actions": ["kettle", 7][: asked["k"]]}
        return Answer(200, {"decision_id": asked["decision_id"], "model_version": 1, "replayed": replayed, **chosen})

    def _post_reward(self, request):
        return Answer(200, self._rewarded(request.body))

    def _post_rewards(self, request):
        return Answer(200, {"results": [self._rewarded(row) for row in request.body["rewards"]]})

    def _rewarded(self, row):
        if row["decision_id"].startswith("unknown"):
            why = problem("unknown-decision", 404, value=row["decision_id"]).body
            return {"decision_id": row["decision_id"], "status": "refused", "problem": why}
        key = (row["decision_id"], row.get("slot", 0), row.get("reward_id", ""))
        replayed = key in self.rewards
        self.rewards.setdefault(key, row["value"])
        return {"decision_id": row["decision_id"], "status": "learned", "replayed": replayed}


class ScriptedServer(ThreadingHTTPServer):
    """The next requests meet what is in `script`, one after the other; those after it are handled by the toy."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.service = ToyService()
        self.script: list[Any] = []
        self.requests: list[Request] = []
        self.accepted = 0
        self.open: set[int] = set()
        self.changed = threading.Condition()
        self.released = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait_for(self, fact):
        """Wait until something is so."""
        with self.changed:
            assert self.changed.wait_for(fact, WAIT), "it did not come to be so"

    def took(self, request):
        with self.changed:
            self.requests.append(request)
            self.changed.notify_all()
            return self.script.pop(0) if self.script else None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer goes in one piece, or each would wait for the client's kernel
    server: ScriptedServer

    def setup(self):
        super().setup()
        with self.server.changed:
            self.server.accepted += 1
            self.server.open.add(id(self))

    def finish(self):
        try:
            super().finish()
        finally:
            with self.server.changed:
                self.server.open.discard(id(self))
                self.server.changed.notify_all()

    def log_message(self, *_):
        """Nothing: tests look at `requests`."""

    def handle(self):
        with suppress(ConnectionError):  # the client may go away
            super().handle()

    def _take(self):
        parts = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        query = {name: found[0] for name, found in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, parts.path, query, headers, content)
        move = self.server.took(request)
        if isinstance(move, Answer):
            self._answer(move)
        elif move == GARBAGE:
            self.close_connection = True
            self.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        elif move == DROPPED:
            self.close_connection = True
        else:
            answer = self.server.service.handle(request)
            self.close_connection = move is not None
            if move == DONE_SILENT:
                self.server.released.wait(WAIT)
            elif move != DONE_DROPPED:
                self._answer(answer, cut=move == DONE_HALF)

    do_GET = do_POST = do_PUT = _take  # noqa: N815

    def _answer(self, answer, cut=False):
        content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        headers = {"content-type": "application/json", "x-request-id": f"r{len(self.server.requests)}"}
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        self.wfile.flush()


@contextmanager
def scripted_server():
    """A server on a free port, and at the end none."""
    server = ScriptedServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()
