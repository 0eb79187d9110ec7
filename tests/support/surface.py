"""A service with two experiments to ask odd things of, on any database: plain rewards, and clicks with contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars

import bough
import postgres
from bough.service.files import model_bytes
from service_process import ServiceProcess

PATHS = ("tea/green", "tea/black", "tea/oolong", "coffee/espresso", "coffee/mocca")
CONTEXT = {"age": 33, "device": "phone"}
DATABASES: dict[str, Callable[[], str | None]] = {"sqlite": lambda: None, "postgres": postgres.empty_log}
"""By name: the address of an empty one; None for one in the service's own folder."""


def plain_model() -> bough.GaussianModel:
    """One without contexts."""
    return bough.GaussianModel(bough.Tree.from_paths(PATHS))


def click_model() -> bough.BernoulliModel:
    """One with contexts by name."""
    visits = polars.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "device": ["phone", "desk", "phone", "desk"]})
    features = bough.Features.learn(visits, other_below=1)
    return bough.BernoulliModel(bough.Tree.from_paths(PATHS), mean=[0.0] * len(features.names), features=features)


@contextmanager
def surface(folder: Path, database: str, **settings: Any) -> Iterator[ServiceProcess]:
    """A service with the experiments shop and ads, each of which has made and learned from some decisions."""
    with ServiceProcess(folder, database=DATABASES[database](), model=plain_model(), **settings) as service:
        done(service, "PUT", "/v1/ads", {})
        done(service, "PUT", "/v1/ads/model", model_bytes(click_model()))
        for number in range(10):
            for name, context in (("shop", {}), ("ads", {"context": CONTEXT})):
                done(
                    service, "POST", f"/v1/{name}/decide", {"decision_id": f"d{number}", "propensity": True, **context}
                )
                done(service, "POST", f"/v1/{name}/reward", {"decision_id": f"d{number}", "value": number % 2})
        yield service


def done(service: ServiceProcess, method: str, path: str, body: Any = None) -> Any:
    """The body of an answer that must be a success."""
    answer = service.ask(method, path, body)
    assert answer.status in (200, 201, 202, 204), answer
    return answer.body
