"""The Dockerfile and the compose file, as far as they can be read: what they name is there, and their commands work."""

import json
import re

import pytest
import yaml

from bough.cli import parser
from bough.service.kernels import compile_all
from bough.service.routes import ROUTES
from places import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES = [name for name in COMPOSE["services"] if name != "db"]


def command_of(words):
    given = parser.make_parser().parse_args(words)
    assert callable(given.run)
    return given


def test_what_is_copied_is_there_and_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_serves_from_its_volume():
    given = command_of(json.loads(re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)[-1]))
    assert [str(given.data)] == re.findall(r"^VOLUME (.*)$", DOCKERFILE, re.MULTILINE)
    assert [str(given.port)] == re.findall(r"^EXPOSE (.*)$", DOCKERFILE, re.MULTILINE)
    assert given.host == "0.0.0.0"


def test_its_health_is_asked_for_at_a_route_without_a_key():
    [path] = re.findall(r"http://127.0.0.1:8000(/\w+)", DOCKERFILE)
    [route] = [route for route in ROUTES.values() if route.path == path]
    assert route.scope is None


def test_the_module_that_compiles_its_kernels_does():
    assert "python -m bough.service.kernels" in DOCKERFILE
    assert compile_all() == 12


@pytest.mark.parametrize("name", SERVICES)
def test_two_services_share_the_database_as_nobody_in_particular(name):
    assert len(SERVICES) == 2
    service = COMPOSE["services"][name]
    given = command_of(service["command"])
    assert given.database == "postgresql://bough@db/bough"
    assert service["read_only"]
    assert service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"]
    assert service["depends_on"]["db"] == {"condition": "service_healthy"}
    assert COMPOSE["services"]["db"]["healthcheck"]
