"""Figures for Prometheus, in a registry of their own: what is measured, and what to alert on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from bough.service.problems import KINDS
from bough.service.records import Position
from bough.service.schema import Decided

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 4_096)


class Measure(NamedTuple):
    """What one metric says, and when somebody should look."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    alert: str = ""
    buckets: tuple[float, ...] = _SECONDS


MEASURES = (
    Measure("bough_requests_total", "counter", ("route", "status"), "Requests that were answered.",
            "more than 1% with status 500 or 503 for 5 minutes"),
    Measure("bough_request_seconds", "histogram", ("route",), "Seconds from a request to its answer.",
            "the 99th percentile of `decide` above what your pages can wait for"),
    Measure("bough_problems_total", "counter", ("code",), "Problems that were answered, among them refusals of keys.",
            "any `not-written` or `internal`; many `no-key` or `wrong-scope`: somebody tries keys"),
    Measure("bough_decisions_total", "counter", ("experiment",), "Decisions that were logged.",
            "none for 10 minutes where there is traffic"),
    Measure("bough_rewards_total", "counter", ("experiment", "status"), "Rewards, by what became of them.",
            "a rising share of `late`: the window is too short"),
    Measure("bough_agreements_total", "counter", ("experiment", "agrees"),
            "Decisions in the mode observe, by whether the service would have chosen the same."),
    Measure("bough_commit_seconds", "histogram", (), "Seconds per commit, most of them for the disk.",
            "the 99th percentile above 0.5 s: the disk is slow"),
    Measure("bough_commit_rows", "histogram", (), "Requests that were committed together.", buckets=_ROWS),
    Measure("bough_waiting", "gauge", (), "Requests that wait to be logged.",
            "more than half of `--most-waiting`"),
    Measure("bough_learned_seq", "gauge", (), "The number of the last record in the log that was learned."),
    Measure("bough_lag_seconds", "gauge", (), "Seconds from the logging of the last record to its being learned.",
            "above `--lag-limit` for a minute"),
    Measure("bough_replaying", "gauge", (), "1 while the log is replayed after a start, and 0 then.",
            "1 for more than 5 minutes"),
    Measure("bough_quarantined_total", "counter", (), "Records that could not be learned.",
            "any: the log of the service says why"),
    Measure("bough_snapshot_timestamp_seconds", "gauge", ("experiment",),
            "When this process wrote its last snapshot, in seconds since 1970.",
            "older than ten times `--snapshot-seconds` while rewards come in"),
    Measure("bough_snapshot_bytes", "gauge", ("experiment",), "The size of that snapshot."),
    Measure("bough_snapshot_stall_seconds", "histogram", (), "Seconds that decisions waited for a snapshot.",
            "the 99th percentile above 0.1 s"),
    Measure("bough_refits_total", "counter", ("result",), "Refits, by whether they were done or failed.",
            "any `failed`"),
    Measure("bough_log_bytes", "gauge", ("part",), "The size of the database, and of the log beside it (`wal`).",
            "`wal` above ten times `--checkpoint-bytes`; `database` above 80% of the disk"),
    Measure("bough_keeper", "gauge", (), "1 where this process is the keeper, and 0 otherwise.",
            "the sum over all processes is not 1 for a minute"),
    Measure("bough_open_decisions", "gauge", ("experiment",), "Decisions whose windows have not closed yet.",
            "rising for hours: no keeper closes windows"),
    Measure("bough_model_version", "gauge", ("experiment",), "The version of the model that decides.",
            "processes differ for more than a minute"),
)  # fmt: skip
"""All metrics, in the order of docs/reference/service-metrics.md."""


class _Registry(CollectorRegistry):
    """A registry that leaves out when each counter was made: that doubles the page, and nobody asks for it."""

    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric


class _Writer(Protocol):
    @property
    def n_waiting(self) -> int: ...


class _Tail(Protocol):
    @property
    def position(self) -> Position: ...
    @property
    def lag(self) -> float: ...


class _Keeper(Protocol):
    @property
    def is_keeper(self) -> bool: ...


class _Log(Protocol):
    def sizes(self) -> dict[str, int]: ...


class _Experiment(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def model_version(self) -> int: ...


class Observed(Protocol):
    """What is asked of a service when the figures are wanted."""

    @property
    def writer(self) -> _Writer: ...
    @property
    def tail(self) -> _Tail: ...
    @property
    def keeper(self) -> _Keeper: ...
    @property
    def log(self) -> _Log: ...
    @property
    def is_replaying(self) -> bool: ...
    @property
    def experiments(self) -> Sequence[_Experiment]: ...


class Metrics:
    """The figures of one service. What happens often costs about a microsecond.

    >>> metrics = Metrics()
    >>> metrics.answered("decide", 200, 0.0012)
    >>> b'bough_requests_total{route="decide",status="200"} 1.0' in metrics.page()[0]
    True
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._registry = _Registry()
        ProcessCollector(registry=self._registry)
        self._of: dict[str, Any] = {one.name: _made(one, self._registry) for one in MEASURES}
        self._children: dict[tuple[str, ...], Any] = {}
        self._answered: dict[tuple[str, int], tuple[Callable[[], None], Callable[[float], None]]] = {}
        self._commit_seconds, self._commit_rows = self._of["bough_commit_seconds"], self._of["bough_commit_rows"]
        for code in KINDS:  # a rate can be told only of what was 0 before
            self._child("bough_problems_total", code)
        for result in ("done", "failed"):
            self._child("bough_refits_total", result)

    def _child(self, *key: str) -> Any:
        """A metric with its labels; prometheus_client's own search takes several times as long."""
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = self._of[key[0]].labels(*key[1:])
        return found

    # -- what happens ----------------------------------------------------------------------------

    def answered(self, route: str, status: int, seconds: float, code: str | None = None) -> None:
        """A request was answered, with a problem of some code or with none; its route is "" where it had none."""
        found = self._answered.get((route, status))
        if found is None:
            name = route or "none"
            count = self._child("bough_requests_total", name, str(status)).inc
            found = self._answered[route, status] = count, self._child("bough_request_seconds", name).observe
        count, observe = found
        count()
        observe(seconds)
        if code is not None:
            self._child("bough_problems_total", code).inc()

    def decided(self, experiment: str, decided: Decided) -> None:
        """A decision was logged."""
        self._child("bough_decisions_total", experiment).inc()
        if decided.suggested is not None:
            chosen = decided.action if decided.actions is None else decided.actions
            agrees = "yes" if decided.suggested == chosen else "no"
            self._child("bough_agreements_total", experiment, agrees).inc()

    def rewarded(self, experiment: str, status: str) -> None:
        """A reward was logged."""
        self._child("bough_rewards_total", experiment, status).inc()

    def committed(self, rows: int, seconds: float) -> None:
        """So many requests were committed together."""
        self._commit_rows.observe(rows)
        self._commit_seconds.observe(seconds)

    def quarantined(self, n: int) -> None:
        """Records could not be learned."""
        self._of["bough_quarantined_total"].inc(n)

    def snapshotted(self, experiment: str, size: int, stall: float) -> None:
        """A snapshot was written, for which decisions waited so many seconds."""
        self._child("bough_snapshot_timestamp_seconds", experiment).set(self._now())
        self._child("bough_snapshot_bytes", experiment).set(size)
        self._of["bough_snapshot_stall_seconds"].observe(stall)

    def refitted(self, is_done: bool) -> None:
        """A refit ended."""
        self._child("bough_refits_total", "done" if is_done else "failed").inc()

    def opened(self, experiment: str, n: int) -> None:
        """So many decisions are open."""
        self._child("bough_open_decisions", experiment).set(n)

    # -- how it is now ---------------------------------------------------------------------------

    def observe(self, service: Observed) -> None:
        """Take down how a service is; for a thread where its database is asked for sizes over a network."""
        self._of["bough_waiting"].set(service.writer.n_waiting)
        self._of["bough_learned_seq"].set(service.tail.position.seq)
        self._of["bough_lag_seconds"].set(service.tail.lag)
        self._of["bough_replaying"].set(service.is_replaying)
        self._of["bough_keeper"].set(service.keeper.is_keeper)
        for part, size in service.log.sizes().items():
            self._child("bough_log_bytes", part).set(size)
        for experiment in service.experiments:
            self._child("bough_model_version", experiment.name).set(experiment.model_version)

    def page(self, service: Observed | None = None) -> tuple[bytes, str]:
        """All figures as Prometheus reads them, and the media type of that."""
        if service is not None:
            self.observe(service)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def _made(one: Measure, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if one.kind == "counter":
        return Counter(one.name, one.help, one.labels, registry=registry)
    if one.kind == "gauge":
        return Gauge(one.name, one.help, one.labels, registry=registry)
    return Histogram(one.name, one.help, one.labels, buckets=one.buckets, registry=registry)
