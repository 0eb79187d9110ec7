"""What cannot be sent is refused in words before anything is sent; what can be read as plain numbers and names is."""

import datetime
import decimal
import json

import numpy as np
import pandas
import polars
import pytest

from bough.client import AsyncClient, Client, calls

NAN = float("nan")

REFUSED = {
    "NaN in a context": (lambda c: c.decide([1.0, NAN]), "the context at place 1 is nan; give a finite number"),
    "NaN of numpy": (lambda c: c.decide(np.array([np.inf])), "the context at place 0 is inf; give a finite number"),
    "NaN by name": (lambda c: c.decide({"hour": NAN}), "the context's 'hour' is nan; give a finite number"),
    "a context of text": (lambda c: c.decide("NL"), "the context is 'NL'; give a list of numbers, or a dict"),
    "text in a context": (lambda c: c.decide(["NL"]), "the context at place 0 is 'NL'; give a number"),
    "a number as a context": (lambda c: c.decide(5), "the context is 5; give a list"),
    "a table as a context": (lambda c: c.decide(np.ones((2, 2))), r"at place 0 is \[1.0, 1.0\]; give a number"),
    "a missing entry": (lambda c: c.decide([None]), "at place 0 is None"),
    "a masked entry": (lambda c: c.decide(np.ma.array([1.0], mask=[True])), "at place 0 is None; give a number"),
    "complex": (lambda c: c.decide([1j]), "at place 0 is 1j"),
    "a time": (lambda c: c.decide({"at": np.datetime64("2026-01-01")}), "is a time; give numbers or text"),
    "a datetime": (lambda c: c.decide({"at": datetime.date(2026, 1, 1)}), "the context's 'at' is .*; give a number"),
    "a list by name": (lambda c: c.decide({"hours": [1, 2]}), "the context's 'hours' is .*; give one number"),
    "a feature without a name": (lambda c: c.decide({1: 2.0}), "a feature called 1; give the names of features"),
    "k of none": (lambda c: c.decide(k=0), "k is 0; give a whole number of at least 1"),
    "k of a half": (lambda c: c.decide(k=1.5), "k is 1.5"),
    "k of True": (lambda c: c.decide(k=True), "k is True"),
    "among one": (lambda c: c.decide(among="kettle"), "among is 'kettle'; give a list of action names"),
    "among a number": (lambda c: c.decide(among=5), "among is 5; give a list"),
    "among floats": (lambda c: c.decide(among=[1.5]), "the action in among is 1.5; names are text or whole numbers"),
    "exclude None": (lambda c: c.decide(exclude=[None]), "the action in exclude is None"),
    "exclude a flag": (lambda c: c.decide(exclude=[True]), "the action in exclude is True"),
    "defer": (lambda c: c.decide(defer="no"), "defer is 'no'; give True or False"),
    "propensity": (lambda c: c.decide(propensity=1000), "propensity is 1000; give True or False"),
    "action": (lambda c: c.decide(action=b"kettle"), "the action is b'kettle'"),
    "an empty id": (lambda c: c.decide(decision_id=""), "decision_id is ''; give 1 to 128 letters"),
    "a long id": (lambda c: c.decide(decision_id="a" * 129), "give 1 to 128 letters"),
    "an id with NUL": (lambda c: c.decide(decision_id="a\0"), "decision_id is "),
    "an id with a newline": (lambda c: c.decide(decision_id="a\n"), "decision_id is "),
    "an id of dots": (lambda c: c.decision(".."), "decision_id is '..'"),
    "an id with a slash": (lambda c: c.explain("a/b"), "decision_id is 'a/b'"),
    "an id that is a number": (lambda c: c.activate(7), "decision_id is 7"),
    "NaN as a reward": (lambda c: c.reward("d1", NAN), "the reward is nan; give a finite number"),
    "no reward": (lambda c: c.reward("d1", None), "the reward is None; give a number"),
    "rewards as one": (lambda c: c.reward("d1", [1.0]), "the reward is .*; give a number"),
    "reward of text": (lambda c: c.reward("d1", "1"), "the reward is '1'; give a number"),
    "trials": (lambda c: c.reward("d1", 1, trials=0), "trials is 0; give a positive number"),
    "exposure": (lambda c: c.reward("d1", 1, exposure=-1), "exposure is -1; give a positive number"),
    "both": (lambda c: c.reward("d1", 1, trials=2, exposure=2), "both trials and exposure"),
    "slot": (lambda c: c.reward("d1", 1, slot=-1), "slot is -1"),
    "reward_id": (lambda c: c.reward("d1", 1, reward_id=""), "reward_id is ''"),
    "rewards of a row": (lambda c: c.rewards("d1"), "rows is 'd1'; give a list"),
    "rewards of nothing": (lambda c: c.rewards(None), "rows is None"),
    "rewards of ids": (lambda c: c.rewards([("d1", 1), "d2"]), "row 1: 'd2' is not a reward; give a"),
    "rewards of triples": (lambda c: c.rewards([("d1", 1, 2)]), "row 0: .* is not a reward"),
    "a bad reward": (lambda c: c.rewards([("d1", 1), ("d2", NAN)]), "row 1: the reward is nan"),
    "an odd field": (lambda c: c.rewards([{"decision_id": "d1", "valeu": 1}]), "row 0: the dict .*valeu"),
    "a missing field": (lambda c: c.rewards([{"decision_id": "d1"}]), "row 0: the dict .*value"),
    "top": (lambda c: c.top(0), "k is 0"),
    "tree": (lambda c: c.tree(1.5), "the node is 1.5"),
    "levels": (lambda c: c.tree(levels="two"), "levels is 'two'"),
    "search": (lambda c: c.search(""), "text is ''; give a part of a name"),
    "series": (lambda c: c.series(-1), "minutes is -1"),
    "export without a format": (lambda c: c.export("events.csv"), "'events.csv' does not say its format; give format"),
    "export in a format": (lambda c: c.export("events.csv", "csv"), "format is 'csv'"),
    "export to nowhere": (lambda c: c.export("/nowhere/events.parquet"), "no folder '/nowhere'; make it first"),
    "export to 5": (lambda c: c.export(5), "path is 5; give the path of a file"),
    "since": (lambda c: c.evaluate(since="today"), "the since is 'today'"),
    "estimators": (lambda c: c.evaluate(estimators="dr"), "estimators is 'dr'; give a list of texts"),
    "add": (lambda c: c.add(None, under="kitchen"), "the action is None"),
    "add none": (lambda c: c.add([], under="kitchen"), "name is an empty list"),
    "under": (lambda c: c.add("juicer", under=None), "the node to add it under is None"),
    "move": (lambda c: c.move("kettle", under=None), "the node to move it under is None"),
    "retire": (lambda c: c.retire([1.5]), "the action in name is 1.5"),
    "paths": (lambda c: c.put_tree("a/b"), "paths is 'a/b'; give a list of texts"),
    "a path": (lambda c: c.put_tree([("a", "b")]), "paths has .*; give a list of texts"),
    "sep": (lambda c: c.put_tree(["a"], sep=""), "sep is ''"),
    "gone": (lambda c: c.put_tree(["a"], gone="delete"), "gone is 'delete'; give \"retire\""),
    "renamed": (lambda c: c.put_tree(["a"], renamed={1: 2}), "renamed is {1: 2}"),
    "model": (lambda c: c.put_model(5), "model is 5; give the path of a file"),
    "config": (lambda c: c.configure(window=NAN), "the window is nan"),
    "config of odd things": (lambda c: c.configure(window=datetime.timedelta(1)), "the window is .*; give a number"),
    "size": (lambda c: c.batch(size=0), "size is 0; give a whole number from 1 to 10000"),
    "seconds": (lambda c: c.batch(seconds=0), "seconds is 0; give a positive number"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_sent_is_refused_before_it_is_sent(ask, server, what):
    work, text = REFUSED[what]
    with pytest.raises(ValueError, match=text):
        ask(work)
    assert server.requests == []


MADE = {
    "no url": (dict(url=None), "no url was given; .*BOUGH_URL"),
    "url": (dict(url="127.0.0.1:8000"), "url is '127.0.0.1:8000'; give one such as 'http://127.0.0.1:8000'"),
    "url of a file": (dict(url="file:///etc"), "url is "),
    "url without a host": (dict(url="http://"), "url is "),
    "url with a port": (dict(url="http://a:b"), "url is "),
    "url with a query": (dict(url="http://a/?key=5"), "url is "),
    "url of bytes": (dict(url=b"http://a"), "url is "),
    "url of 5": (dict(url=5), "url is 5"),
    "url with a password": (dict(url="http://me:hush@a"), "a user's name or a password in it"),
    "experiment": (dict(experiment="a/b"), "experiment is 'a/b'; give 1 to 64 letters"),
    "no experiment": (dict(experiment=""), "experiment is ''"),
    "key": (dict(key="a b"), "the key is no key"),
    "key of two lines": (dict(key="a\r\nb"), "the key is no key"),
    "no key": (dict(key=""), "the key is no key"),
    "key of 5": (dict(key=5), "the key is no key"),
    "timeout": (dict(timeout=0), "timeout is 0; give a positive number"),
    "no timeout": (dict(timeout=None), "the timeout is None"),
    "retries": (dict(retries=-1), "retries is -1; give a whole number from 0 to 100"),
    "deadline": (dict(deadline=-1.0), "deadline is -1"),
}


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("what", MADE)
def test_a_client_that_could_not_work_is_not_made(kind, what):
    options, text = MADE[what]
    with pytest.raises(ValueError, match=text) as caught:
        kind(**{"url": "http://127.0.0.1:8000", "experiment": "shop", **options})
    assert "hush" not in str(caught.value)


def test_without_an_experiment_the_client_says_so_when_it_needs_one(ask, server):
    with pytest.raises(ValueError, match=r"no experiment was given; .*BOUGH_EXPERIMENT"):
        ask(lambda client: client.decide(), experiment=None)
    assert ask(lambda client: client.health(), experiment=None)["status"] == "ok"


CONTEXTS = {
    "list": ([1, 0.5], [1.0, 0.5]),
    "tuple": ((True, decimal.Decimal("0.5")), [1.0, 0.5]),
    "numpy": (np.array([1, 2]), [1.0, 2.0]),
    "numpy's small floats": (np.array([0.5], dtype=np.float32), [0.5]),
    "scalars of numpy": ([np.float64(0.5), np.int8(2)], [0.5, 2.0]),
    "pandas": (pandas.Series([1.0, 2.0]), [1.0, 2.0]),
    "polars": (polars.Series([1.0, 2.0]), [1.0, 2.0]),
    "an iterator": (iter([1, 2]), [1.0, 2.0]),
    "nothing": (None, None),
    "empty": ([], []),
    "dict": ({"hour": 20, "country": "NL", "new": True, "x": 0.5, "?": None}, None),
    "dict of numpy": (
        {"hour": np.int64(20), "x": np.float32(0.5), "c": np.str_("NL"), "new": np.bool_(True)},
        {"hour": 20, "x": 0.5, "c": "NL", "new": True},
    ),
}


@pytest.mark.parametrize("what", CONTEXTS)
def test_a_context_becomes_plain_numbers(what):
    given, expected = CONTEXTS[what]
    found = json.loads(calls.decide(given).content).get("context")
    assert found == (given if expected is None else expected)


def test_names_become_plain_text_and_whole_numbers():
    call = calls.decide(among=np.array([3, 4]), exclude=pandas.Series(["kettle"]), action=np.int64(3), k=np.int64(2))
    sent = json.loads(call.content)
    assert (sent["among"], sent["exclude"], sent["action"], sent["k"]) == ([3, 4], ["kettle"], 3, 2)
    assert json.loads(calls.decide(among={"kettle"}).content)["among"] == ["kettle"]


def test_a_reward_may_be_any_number():
    for given in (1, True, np.float32(1.0), np.array(1.0), decimal.Decimal(1)):
        assert json.loads(calls.reward("d1", given).content)["value"] == 1.0
