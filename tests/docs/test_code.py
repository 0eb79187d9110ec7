"""Every Python block of the pages runs: those with prompts as doctests, the others in the tests that are named here."""

import pytest

import bough
from pages import PAGES, blocks, name_of

TESTED = {
    "docs/howto/batch.md": "asks for a GPU; tests/batch",
    "docs/howto/client.md": "tests/client/test_alone.py",
    "docs/howto/service.md": "below",
    "docs/results/classes.md": "tests/experiments/test_real_data.py",
    "docs/results/reproduction.md": "tests/simulation/test_simulation.py, on a local cluster",
}


def plain(page):
    """Python blocks without prompts."""
    return [block for block in blocks(page, "python") if ">>>" not in block]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_have_prompts_or_a_test_of_their_own(page):
    assert not plain(page) or name_of(page) in TESTED
    for block in plain(page):
        compile(block, name_of(page), "exec")


def test_the_block_of_the_page_of_the_service_makes_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [page] = [page for page in PAGES if name_of(page) == "docs/howto/service.md"]
    [block] = plain(page)
    exec(block, {})
    assert bough.BernoulliModel.load("model.bough").tree.n_actions == 4
