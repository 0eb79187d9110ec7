"""The figures: each is kept, each is documented, and services do not share them."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bough.service.metrics import MEASURES, Metrics
from bough.service.problems import KINDS
from bough.service.records import Position
from bough.service.schema import Decided

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "service-metrics.md"


def values(metrics, service=None):
    """All samples of the page, by name and labels."""
    page, media = metrics.page(service)
    assert media.startswith("text/plain")
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def row(one):
    labels = ", ".join(f"`{label}`" for label in one.labels)
    return f"| `{one.name}` | {one.kind} | {labels} | {one.help} | {one.alert} |"


def test_the_page_of_the_docs_has_each_metric_and_no_other():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `bough_")]
    assert rows == [row(one) for one in MEASURES]


def test_every_metric_is_named_as_prometheus_wants_it():
    for one in MEASURES:
        assert one.name.endswith("_total") == (one.kind == "counter")
        assert one.help.endswith(".")


class Service:
    writer = SimpleNamespace(n_waiting=3)
    tail = SimpleNamespace(position=Position(0, 17), lag=0.25)
    keeper = SimpleNamespace(is_keeper=True)
    log = SimpleNamespace(sizes=lambda: {"database": 4096, "wal": 100})
    is_replaying = False
    experiments = (SimpleNamespace(name="shop", model_version=2),)


@pytest.fixture
def busy():
    """Metrics of a service to which everything has happened."""
    metrics = Metrics(now=lambda: 123.0)
    metrics.answered("decide", 200, 0.003)
    metrics.answered("decide", 200, 0.004)
    metrics.answered("", 404, 0.001, "unknown-route")
    metrics.decided("shop", Decided("d1", 1, False, action="tea"))
    metrics.decided("shop", Decided("d2", 1, False, action="tea", suggested="tea"))
    metrics.decided("shop", Decided("d3", 1, False, action="tea", suggested="cake"))
    metrics.decided("shop", Decided("d4", 1, False, actions=["tea", "cake"], suggested=["tea", "cake"]))
    metrics.rewarded("shop", "late")
    metrics.committed(9, 0.004)
    metrics.committed(1, 0.004)
    metrics.quarantined(2)
    metrics.snapshotted("shop", 1000, 0.01)
    metrics.refitted(True)
    metrics.opened("shop", 12)
    return metrics


def test_every_metric_is_on_the_page_once_everything_has_happened(busy):
    families = {
        family.name for family in text_string_to_metric_families(busy.page(Service())[0].decode()) if family.samples
    }
    assert {one.name.removesuffix("_total") for one in MEASURES} <= families


def test_what_happened_is_what_is_counted(busy):
    found = values(busy, Service())
    shop = ("experiment", "shop")
    expected = {
        ("bough_requests_total", ("route", "decide"), ("status", "200")): 2,
        ("bough_requests_total", ("route", "none"), ("status", "404")): 1,
        ("bough_request_seconds_count", ("route", "decide")): 2,
        ("bough_request_seconds_sum", ("route", "decide")): 0.007,
        ("bough_problems_total", ("code", "unknown-route")): 1,
        ("bough_problems_total", ("code", "not-written")): 0,
        ("bough_decisions_total", shop): 4,
        ("bough_agreements_total", ("agrees", "yes"), shop): 2,
        ("bough_agreements_total", ("agrees", "no"), shop): 1,
        ("bough_rewards_total", shop, ("status", "late")): 1,
        ("bough_commit_rows_sum",): 10,
        ("bough_commit_rows_count",): 2,
        ("bough_commit_rows_bucket", ("le", "1.0")): 1,
        ("bough_commit_seconds_sum",): 0.008,
        ("bough_quarantined_total",): 2,
        ("bough_snapshot_timestamp_seconds", shop): 123,
        ("bough_snapshot_bytes", shop): 1000,
        ("bough_refits_total", ("result", "done")): 1,
        ("bough_refits_total", ("result", "failed")): 0,
        ("bough_open_decisions", shop): 12,
        ("bough_waiting",): 3,
        ("bough_learned_seq",): 17,
        ("bough_lag_seconds",): 0.25,
        ("bough_replaying",): 0,
        ("bough_keeper",): 1,
        ("bough_log_bytes", ("part", "wal")): 100,
        ("bough_log_bytes", ("part", "database")): 4096,
        ("bough_model_version", shop): 2,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_every_problem_is_counted_from_zero_on():
    found = values(Metrics())
    assert all(found[("bough_problems_total", ("code", code))] == 0 for code in KINDS)


def test_two_services_in_one_process_have_figures_of_their_own():
    one, other = Metrics(), Metrics()
    one.quarantined(5)
    assert values(one)[("bough_quarantined_total",)] == 5
    assert values(other)[("bough_quarantined_total",)] == 0


def test_the_page_has_the_memory_of_the_process_and_no_birthdays(busy):
    found = values(busy)
    assert found[("process_resident_memory_bytes",)] > 0
    assert not any(name.endswith("_created") for name, *_ in found)
