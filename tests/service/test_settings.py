"""The settings: their bounds, and that each is documented."""

import dataclasses
from pathlib import Path

import pytest

from bough.service.settings import SETTINGS, Settings

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "service-settings.md"


def shown(setting):
    if isinstance(setting.default, tuple):
        return ", ".join(setting.default) or "none"
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    return f"{setting.default:g}" if isinstance(setting.default, float) else str(setting.default)


def test_the_page_has_each_setting_with_its_default_and_no_other():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `--")]
    assert rows == [f"| `{one.option}` | {shown(one)} | {one.help} |" for one in SETTINGS]


def test_the_defaults_are_within_their_bounds_and_cannot_be_changed_later():
    settings = Settings()
    assert {one.name: one.default for one in SETTINGS} == dataclasses.asdict(settings)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.port = 1


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_every_setting_says_what_it_means_in_one_line(setting):
    assert setting.help.endswith(".")
    assert "\n" not in setting.help


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("port", -1, "a whole number from 0 to 65535"),
        ("port", 8000.0, "a whole number"),
        ("port", True, "a whole number"),
        ("port", "8000", "a whole number"),
        ("host", "", "a name without spaces"),
        ("host", "a b", "a name without spaces"),
        ("host", None, "a name without spaces"),
        ("rate", float("nan"), "a number of at least 0"),
        ("rate", float("inf"), "a number of at least 0"),
        ("rate", -1.0, "a number of at least 0"),
        ("most_waiting", 0, "a whole number of at least 1"),
        ("keeper_interval", 0.0, "a number from 0.01 to 3600"),
        ("quiet", 1, "True or False"),
        ("cors", "https://a.example", "a tuple of origins"),
        ("cors", ("a.example",), "a tuple of origins"),
        ("cors", ("https://a.example/",), "a tuple of origins"),
        ("cors", ("https://a.example, https://b.example",), "a tuple of origins"),
        ("cors", (3,), "a tuple of origins"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name, value, wanted):
    with pytest.raises(ValueError, match=f"^{name} is .*; give {wanted}"):
        Settings(**{name: value})


@pytest.mark.parametrize("cors", [("https://a.example", "http://localhost:3000"), ("*",), ()])
def test_origins_are_taken(cors):
    assert Settings(cors=cors).cors == cors
