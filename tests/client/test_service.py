"""The client and the real service, in a process of its own: what they say to each other is understood."""

import asyncio

import pytest

import bough
from bough import client as errors
from bough.client import AsyncClient, Client
from served import Served

PATHS = ["home/kitchen/kettle", "home/kitchen/toaster", "home/garden/spade"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    bough.GaussianModel(bough.Tree.from_paths(PATHS)).save(folder / "model.bough")
    with Served(folder, "--data", "data", "--model", "model.bough", "--experiment", "shop") as running:
        yield running


@pytest.fixture
def client(served):
    with Client(served.address, experiment="shop", key=served.key, timeout=60.0, deadline=120.0) as made:
        yield made


def test_a_decision_is_made_once_and_rewarded_once(client):
    decided = client.decide()
    assert decided.action in PATHS
    assert not decided.replayed
    again = client.decide(decision_id=decided.decision_id)
    assert again.replayed
    assert again.action == decided.action
    assert client.reward(decided, 1.0).status == "learned"
    assert client.reward(decided, 1.0).replayed
    with pytest.raises(errors.SameIdError):
        client.reward(decided, 2.0)
    assert client.decision(decided)["status"] == "rewarded"


def test_several_actions_with_how_likely_they_were(client):
    decided = client.decide(k=2, exclude=[PATHS[2]], propensity=True)
    assert sorted(decided.actions) == PATHS[:2]
    assert decided.propensity == pytest.approx([1.0, 1.0])
    assert client.reward(decided, 0.5, slot=1).slot == 1


def test_a_deferred_decision_is_activated_or_cancelled(client):
    decided = client.decide(defer=True)
    assert not decided.active
    assert client.activate(decided).status == "active"
    other = client.decide()
    assert client.cancel(other).status == "cancelled"
    with pytest.raises(errors.WrongStateError):
        client.reward(other, 1.0)


def test_many_rewards_have_a_result_each(client):
    decided = client.decide()
    taken, refused = client.rewards([(decided, 1.0), ("nowhere", 1.0)])
    assert taken.status == "learned"
    assert isinstance(refused, errors.UnknownDecisionError)
    with client.batch(size=10) as batch:
        for _ in range(25):
            batch.reward(client.decide(), 0.5)
    assert batch.taken == 25


def test_the_async_client_speaks_to_it_too(served):
    async def main():
        async with AsyncClient(served.address, experiment="shop", key=served.key, timeout=60.0) as client:
            made = await asyncio.gather(*[client.decide() for _ in range(10)])
            async with client.batch() as batch:
                for decided in made:
                    await batch.reward(decided, 1.0)
            return batch.taken

    assert asyncio.run(main()) == 10


WRONG = {
    "unknown action": (lambda client: client.decide(among=["blakc"]), errors.UnknownActionError),
    "unknown decision": (lambda client: client.reward("nowhere", 1.0), errors.UnknownDecisionError),
    "too many": (lambda client: client.decide(k=9), errors.InvalidValueError),
    "a context": (lambda client: client.decide([1.0]), errors.InvalidValueError),
    "an unknown setting": (lambda client: client.configure(windw=3), errors.InvalidValueError),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_the_error_for_it_with_the_id_of_the_request(client, what):
    work, expected = WRONG[what]
    with pytest.raises(expected) as caught:
        work(client)
    assert caught.value.remedy
    assert str(caught.value).startswith(caught.value.request_id)


def test_keys_and_experiments_that_it_does_not_know_are_refused(served):
    refusals = [("shop", "wrong", PermissionError), ("nowhere", served.key, errors.UnknownExperimentError)]
    for experiment, key, expected in refusals:
        with Client(served.address, experiment=experiment, key=key) as client, pytest.raises(expected):
            client.decide()


def test_it_looks_and_changes(client):
    assert client.ready()
    assert client.health()["status"] == "ok"
    assert client.configure(propensity="asked")["config"]["propensity"] == "asked"
    before = client.describe()["actions"]
    client.add("home/kitchen/juicer", under="home/kitchen")
    client.retire("home/kitchen/juicer")
    client.restore(["home/kitchen/juicer"])
    client.move("home/kitchen/juicer", under="home/garden")
    assert [node.name for node in client.search("juicer")] == ["home/kitchen/juicer"]
    assert len(client.top(2)) == 2
    assert client.put_tree([*PATHS, "home/garden/rake"], gone="retire").seq > 0
    assert before == 3
    assert "home/garden/rake" in client.decide(among=["home/garden/rake"]).actions
    assert client.retract(_rewarded(client)).status == "retracted"


def _rewarded(client):
    decided = client.decide()
    client.reward(decided, 1.0)
    return decided


@pytest.fixture
def crossed(tmp_path):
    """A service whose products have brands, and whose decisions have a store."""
    tree = bough.Tree.from_paths(PATHS)
    factors = {
        "brand": bough.Factor({PATHS[0]: "Acme", PATHS[2]: "Acme"}, variance=0.5),
        "store": bough.Factor(levels=["north", "south"], variance=0.3, at_decision=True),
    }
    bough.GaussianModel(tree, factors=factors).save(tmp_path / "model.bough")
    with (
        Served(tmp_path, "--data", "data", "--model", "model.bough", "--experiment", "shop") as running,
        Client(running.address, experiment="shop", key=running.key, timeout=60.0, deadline=120.0) as made,
    ):
        yield made


def test_brands_and_stores_from_the_decision_to_the_export(crossed):
    decided = crossed.decide(factors={"store": "north"}, propensity=True)
    assert crossed.reward(decided, 2.0).status == "learned"
    later = crossed.decide()
    with pytest.raises(errors.InvalidValueError, match="the levels of 'store' are missing"):
        crossed.reward(later, 1.0)
    assert crossed.reward(later, 1.0, factors={"store": "south"}).status == "learned"
    with pytest.raises(errors.ServiceError, match="unknown level 'east'"):
        crossed.decide(factors={"store": "east"})
    crossed.add_level("store", "east")
    crossed.add_level("brand", "Newco")
    crossed.add("mug", under="home/kitchen", factors={"brand": {"mug": ["Newco", "Acme"]}})
    assert crossed.decide(factors={"store": "east"}, among=["mug"]).action == "mug"
    crossed.put_tree(["home/kitchen/kettle", "home/kitchen/jug"], factors={"brand": {"home/kitchen/jug": "Zed"}})
    assert crossed.decision(decided)["factors"] == {"store": "north"}
    explained = crossed.explain(decided)
    assert "of the store 'north'" in str(explained)
    assert crossed.describe()["observations"] == 2


def test_none_takes_the_brand_of_an_action_away(crossed):
    def effects_of(name):
        id = name.rsplit("/")[-1]
        crossed.decide(decision_id=id, among=[name])
        return str(crossed.explain(id))

    kettle, toaster, spade = PATHS
    assert "of the brand 'Acme'" in effects_of(kettle)
    crossed.put_tree(PATHS, factors={"brand": {kettle: None, toaster: "Bolt"}})
    assert "brand" not in effects_of(kettle)
    assert "of the brand 'Bolt'" in effects_of(toaster)
    assert "of the brand 'Acme'" in effects_of(spade)  # which was left out, and keeps its own
    crossed.add("mug", under="home/kitchen", factors={"brand": None})
    assert "brand" not in effects_of("mug")
