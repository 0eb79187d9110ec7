"""Draws the pictures of the dashboard: a service that sells a grocery's products for some minutes, in a browser.

`python docs/dashboard_pictures.py`, which takes ten minutes and needs Debian's chromium and the extras `test` and
`catalogue`. The rewards are real lines of the products; times, and with them the order of decisions, are not repeated.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import bough.client
from bough.experiments import grocery

IMAGES = Path(__file__).parent / "images"
MINUTES, REFITS = 8.0, (3.0, 5.0)
VISITORS, PAUSE = 4, 0.02  # seconds between one visitor's visits
OPENED = "MEAT"  # a department of the picture on a dark screen


def lines_by_product() -> dict[str, np.ndarray]:
    """What each product earned, line by line."""
    data = grocery.catalogue(20)
    found: dict[str, list[float]] = {}
    for half in (data.training, data.held_out):
        for product, y in zip(half["product_id"].tolist(), half["y"].tolist(), strict=True):
            found.setdefault(str(product), []).append(y)
    return {product: np.array(lines) for product, lines in found.items()}


def visit(client: bough.client.Client, lines: dict[str, np.ndarray], until: float, seed: int) -> None:
    """Ask for a product, and earn one of its lines, again and again."""
    rng = np.random.default_rng(seed)
    with client.batch(200, 0.2) as rewards:
        while time.monotonic() < until:
            decided = client.decide()
            own = lines[str(decided.action)]
            rewards.reward(decided, float(own[rng.integers(len(own))]))
            time.sleep(PAUSE)


def take(link: str) -> None:
    """Both pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1500, "height": 1400})
        page.goto(link)
        page.wait_for_selector("body[data-state=ready]")
        page.locator("#why-recent [title^=decision]").first.click()
        page.wait_for_timeout(4_000)
        page.screenshot(path=IMAGES / "dashboard.png", full_page=True)
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 1300, "height": 860})
        page.locator(f'.cell[data-node="{OPENED}"]').click(position={"x": 5, "y": 5})
        page.wait_for_timeout(2_000)
        page.screenshot(path=IMAGES / "dashboard-dark.png")
        browser.close()


def main() -> None:
    """Serve, sell, and look."""
    lines = lines_by_product()
    with tempfile.TemporaryDirectory() as folder:
        grocery.learned_prior(20).model.save(Path(folder) / "model.bough")
        words = [
            "--data",
            "data",
            "--model",
            "model.bough",
            "--experiment",
            "grocery",
            "--port",
            "0",
            "--json",
            "--quiet",
        ]
        service = subprocess.Popen(
            [sys.executable, "-m", "bough", "serve", *words], cwd=folder, stdout=subprocess.PIPE, text=True
        )
        try:
            text = ""
            while not text.endswith("}\n"):
                text += service.stdout.readline()
            said = json.loads(text)
            with bough.client.Client(said["address"], experiment="grocery", key=said["key"], deadline=120.0) as client:
                client.decide()
                begun = time.monotonic()
                threads = [
                    threading.Thread(target=visit, args=(client, lines, begun + 60.0 * MINUTES, seed))
                    for seed in range(VISITORS)
                ]
                for thread in threads:
                    thread.start()
                for minutes in REFITS:
                    time.sleep(max(0.0, begun + 60.0 * minutes - time.monotonic()))
                    client.refit()
                for thread in threads:
                    thread.join()
            take(said["dashboard"])
        finally:
            service.terminate()
            service.wait()


if __name__ == "__main__":
    main()
