"""Agents in a shop: tables, names, files, refits, and what is refused."""

import contextlib
import copy
import threading

import numpy as np
import pytest

import bough

TREE = bough.Tree.from_nested(
    {"home": {"kitchen": ["kettle", "toaster"], "garden": ["spade", "rake"]}, "toys": {"air": ["kite", "plane"]}}
)
POLICIES = [bough.HierTS, bough.FlatTS, bough.TS, bough.BayesUCB, bough.Greedy]
MODELS = {
    "gaussian": bough.GaussianModel(TREE),
    "clicks": bough.BernoulliModel(TREE, -1.0),
    "counts": bough.PoissonModel(TREE),
    "contexts": bough.GaussianModel(TREE, [0.0, 0.0]),
    "clicks in contexts": bough.BernoulliModel(TREE, [0.0, 0.0]),
    "drift": bough.GaussianModel(TREE, drift=20.0),
}


def agent_of(policy, model, **options):
    agent = policy(model, seed=0, **options)
    context = None if model.is_scalar else [1.0, 0.5]
    for name, reward in (("kettle", 1.0), ("kite", 0.0), ("kite", 1.0)):
        agent.update(name, reward, context)
    return agent


def score(agent, name):
    """The posterior mean and variance of an action's score, by its name."""
    context = None if agent.posterior.model.is_scalar else [1.0, -1.0]
    mean, variance = agent.posterior.action_moments(context)
    place = list(agent.posterior.model.tree.actions).index(name)
    return mean[place], variance[place]


def assert_same_scores(one, other, tolerance=1e-6):
    assert sorted(one.posterior.model.tree.actions) == sorted(other.posterior.model.tree.actions)
    for name in one.posterior.model.tree.actions:
        np.testing.assert_allclose(score(one, name), score(other, name), atol=tolerance)


# -- every policy, every model -----------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_changes_leave_the_agent_that_began_with_the_new_tree(policy, name):
    model = MODELS[name]
    agent = agent_of(policy, model)
    agent.add("home/tools", under="home")
    agent.add(["saw", "drill"], under="home/tools")
    agent.move("rake", under="home/tools")
    agent.update("saw", 1.0, None if model.is_scalar else [0.5, 0.5])
    agent.forget("kettle")
    agent.retire("toaster")

    tree = TREE.edited(
        add={"home/tools": "home", "saw": "home/tools", "drill": "home/tools"}, move={"rake": "home/tools"}
    )
    fresh = policy(type(model)(tree, model.mean, **({"drift": model.drift} if name == "drift" else {})), seed=0)
    context = None if model.is_scalar else [1.0, 0.5]
    for one, reward in (("kite", 0.0), ("kite", 1.0)):
        fresh.update(one, reward, context)
    fresh.update("saw", 1.0, None if model.is_scalar else [0.5, 0.5])
    if "in contexts" not in name:  # whose factors depend on the order in which rewards came
        agent.posterior.settle()
        fresh.posterior.settle()
        assert_same_scores(agent, fresh)
    assert agent.retired == ["toaster"]
    assert agent.decide(None if model.is_scalar else [1.0, 1.0]) != "toaster"


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
def test_agents_come_back_from_files_and_pickles_as_they_were(policy, name, tmp_path):
    agent = agent_of(policy, MODELS[name])
    agent.add(["mug", "pan"], under="home/kitchen")
    agent.update("mug", 1.0, None if MODELS[name].is_scalar else [1.0, 0.0])
    agent.retire(["pan", "kite"])
    agent.now = 12.5
    agent.save(tmp_path / "agent.bough")
    context = None if MODELS[name].is_scalar else [1.0, 1.0]
    for again in (policy.load(tmp_path / "agent.bough"), copy.deepcopy(agent)):
        assert again.retired == ["pan", "kite"]
        assert again.now == 12.5
        assert_same_scores(again, agent, 1e-9)
        assert [again.decide(context) for _ in range(10)] != []
        again.add("cup", under="home/kitchen")  # the whole tree is there
        again.restore("kite")
        with pytest.raises(ValueError, match="time does not go back"):
            again.now = 12.0
        if name == "drift":
            again.update("kite", 1.0, at=20.0)
            with pytest.raises(ValueError, match="'kite' is earlier"):
                again.update("kite", 1.0, at=19.0)


def test_a_posterior_s_file_keeps_half_lives_and_clocks(tmp_path):
    from datetime import datetime, timedelta

    for half_life, times in ((3.0, (1.0, 2.0)), (timedelta(days=3), (datetime(2026, 1, 1), datetime(2026, 1, 2)))):
        posterior = bough.Posterior(MODELS["gaussian"], half_life=half_life)
        posterior.update("kite", 1.0, at=times[0])
        posterior.now = times[1]
        posterior.save(tmp_path / "posterior.bough")
        again = bough.Posterior.load(tmp_path / "posterior.bough")
        assert again.half_life == half_life
        assert again.now == times[1]
        np.testing.assert_allclose(again.mean, posterior.mean)
        agent = bough.HierTS.resume(again, seed=0)
        agent.update("kite", 1.0, at=times[0])
        assert agent.posterior.statistics.count[0] == pytest.approx(2 * 0.5 ** (1 / 3))
        with pytest.raises(ValueError, match="that of the posterior is"):
            bough.HierTS(again, half_life=99.0)


def test_a_posterior_without_a_half_life_can_be_given_one():
    posterior = bough.Posterior(MODELS["gaussian"])
    posterior.update("kite", 1.0)
    agent = bough.HierTS(posterior, half_life=2.0)
    agent.now = 0.0
    agent.now = 2.0
    assert agent.posterior.statistics.count.tolist() == [0.5]


def test_beta_sampling_retires_and_restores(tmp_path):
    agent = bough.BetaTS(MODELS["clicks"], seed=0)
    agent.retire(["kettle", "toaster", "spade", "rake"])
    assert {agent.decide() for _ in range(50)} == {"kite", "plane"}
    agent.save(tmp_path / "agent.bough")
    again = bough.BetaTS.load(tmp_path / "agent.bough")
    assert again.retired == ["kettle", "toaster", "spade", "rake"]
    again.restore("rake")
    again.retire("kite")
    assert {again.decide() for _ in range(50)} == {"rake", "plane"}
    with pytest.raises(ValueError, match="'plane' is the last action that is not retired"):
        again.retire(["rake", "plane"])
    with pytest.raises(ValueError, match="'plane' is not retired"):
        again.restore("plane")
    assert copy.deepcopy(again).retired == again.retired


# -- tables ------------------------------------------------------------------------------------


def table(**more):
    shelves = {"home/kitchen": ["kettle", "toaster"], "home/garden": ["spade", "rake"], "toys/air": ["kite", "plane"]}
    shelves.update({name.replace("_", "/"): names for name, names in more.items()})
    nested = {}
    for path, names in shelves.items():
        above, shelf = path.split("/")
        if names:
            nested.setdefault(above, {})[shelf] = names
    return bough.Tree.from_nested(nested)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_new_table_is_adopted(policy):
    agent = agent_of(policy, MODELS["gaussian"])
    changes = agent.adopt(table(home_kitchen=["kettle", "mug"], home_garden=["spade"], toys_air=["rake", "plane"]))
    assert (changes.added, changes.moved) == (["mug"], ["rake"])
    assert sorted(changes.retired) == ["kite", "toaster"]
    assert (changes.renamed, changes.restored, changes.forgotten) == ({}, [], [])
    assert sorted(agent.retired) == ["kite", "toaster"]
    assert len(str(changes).splitlines()) == 3
    if policy in (bough.HierTS, bough.BayesUCB, bough.Greedy):
        assert agent.posterior.model.tree.path("kite") == ["", "toys", "toys/air", "kite"]
    assert {agent.decide() for _ in range(60)} <= {"kettle", "mug", "spade", "rake", "plane"}

    changes = agent.adopt(table(home_garden=["spade"], toys_air=["kite", "plane"]))
    assert sorted(changes.restored) == ["kite", "toaster"]
    assert sorted(changes.retired) == ["mug", "rake"]
    assert sorted(agent.retired) == ["mug", "rake"]
    fresh = agent_of(policy, bough.GaussianModel(agent_tree(agent)))
    assert_same_scores(agent, fresh, 1e-9)


def agent_tree(agent):
    return agent.posterior.model.tree if agent._star is None else agent._star.whole.tree


def test_what_is_gone_may_be_forgotten_or_refused():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    smaller = table(toys_air=["plane"])
    with pytest.raises(ValueError, match="lacks 1 action: 'kite'; keep them"):
        agent.adopt(smaller, gone="raise")
    assert agent.posterior.model.tree.n_actions == 6
    agent.retire("rake")
    changes = agent.adopt(table(home_garden=["spade"], toys_air=["plane"]), gone="forget")
    assert changes.forgotten == ["kite"]
    assert agent.retired == ["rake"]  # it was retired before, and is not gone
    assert "kite" not in agent.posterior.model.tree.actions
    assert agent.posterior.statistics.actions.tolist() == ["kettle"]
    with pytest.raises(ValueError, match="gone is 'keep'"):
        agent.adopt(smaller, gone="keep")
    with pytest.raises(ValueError, match=r"give a bough\.Tree or a model"):
        agent.adopt({"a": "b"})
    with pytest.raises(ValueError, match="give one with such rewards"):
        agent.adopt(bough.BernoulliModel(TREE))


def test_renamed_actions_keep_what_they_learned():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    before = score(agent, "kite")
    changes = agent.adopt(table(toys_air=["dragon", "plane"]), renamed={"kite": "dragon"})
    assert changes.renamed == {"kite": "dragon"}
    assert (changes.added, changes.retired) == ([], [])
    np.testing.assert_allclose(score(agent, "dragon"), before)
    with pytest.raises(KeyError, match="nobody"):
        agent.adopt(TREE, renamed={"nobody": "kite"})
    with pytest.raises((KeyError, ValueError), match="nothing"):
        agent.adopt(table(toys_air=["plane"]), renamed={"dragon": "nothing"})


def test_a_category_that_is_gone_stays_with_its_retired_actions():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.adopt(table(toys_air=[]))
    assert agent.posterior.model.tree.path("kite") == ["", "toys", "toys/air", "kite"]
    assert sorted(agent.retired) == ["kite", "plane"]
    agent.adopt(table(toys_air=[]), gone="raise")  # what was retired before is not gone
    assert sorted(agent.retired) == ["kite", "plane"]


def test_an_action_that_becomes_a_category_must_have_no_rewards():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    with pytest.raises(ValueError, match="'kite' is an action with rewards, and a category of the new table"):
        agent.adopt(bough.Tree.from_parents([-1, 0, 1], ["", "kite", "red kite"]))
    agent.forget("kite")
    changes = agent.adopt(bough.Tree.from_parents([-1, 0, 1], ["", "kite", "red kite"]))
    assert agent.posterior.model.tree.path("red kite") == ["", "kite", "red kite"]
    assert "kite" not in changes.retired


def test_adopting_a_model_takes_its_prior():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    tree = table(home_kitchen=["kettle"])
    model = bough.GaussianModel(tree, 0.5, bough.by_depth([1.0, 2.0, 3.0, 4.0]), 0.25)
    agent.adopt(model)
    now = agent.posterior.model
    assert now.noise_variance == 0.25
    assert now.classes.table.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert agent.retired == ["toaster"]
    by_node = bough.GaussianModel(table(home_garden=["rake"]), covariance=bough.by_node({"rake": 9.0}, default=1.0))
    agent.adopt(by_node)
    tree = agent.posterior.model.tree
    covariance = agent.posterior.model.classes.table[agent.posterior.model.classes.of_node]
    assert covariance[tree.index("rake")] == 9.0
    assert covariance[tree.index("spade")] == 4.0  # a ghost keeps its own
    agent.add("mug", under="home/kitchen", covariance=2.5)
    with pytest.raises(ValueError, match="give covariance="):
        agent.add("cup", under="home/kitchen")
    with pytest.raises(ValueError, match="has none; give covariance="):
        agent.adopt(table(home_kitchen=["kettle", "toaster", "cup"]))


def test_trees_of_other_heights_are_adopted_where_the_prior_says_what_they_have():
    deep = bough.Tree.from_nested({"home": {"kitchen": {"small": ["kettle"]}}, "toys": ["kite"]})
    agent = agent_of(bough.HierTS, bough.GaussianModel(TREE, covariance=2.0))
    agent.adopt(deep)  # one covariance for all
    assert agent.posterior.model.tree.height == 4
    agent = agent_of(bough.HierTS, bough.GaussianModel(TREE, covariance=bough.by_depth([4.0, 3.0, 2.0, 1.0])))
    with pytest.raises(ValueError, match="by_depth has covariances for depth 0 to 3, and there would be nodes at 4"):
        agent.adopt(deep)
    agent.adopt(bough.Tree.from_nested(["kettle", "kite"]), gone="forget")
    assert agent.posterior.model.tree.height == 1
    agent.adopt(TREE)  # and back: the depths are not forgotten
    assert agent.posterior.model.classes.table.tolist() == [4.0, 3.0, 2.0, 1.0]


def test_the_agent_s_own_tree_with_another_prior_changes_nobody():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.retire("kite")
    changes = agent.adopt(bough.GaussianModel(agent.posterior.model.tree, noise_variance=4.0))
    assert changes == bough.Changes()
    assert agent.retired == ["kite"]
    assert agent.posterior.model.noise_variance == 4.0
    agent.adopt(agent.posterior.model.tree)
    assert agent.retired == ["kite"]


def test_integers_are_not_taken_for_text():
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_parents([-1, 0, 0], ["all", 101, 102])), seed=0)
    with pytest.raises(ValueError, match="'101', a str, and the agent knows it as another type"):
        agent.adopt(bough.Tree.from_parents([-1, 0, 0], ["all", "101", "102"]))
    assert agent.retired == []


def test_names_come_as_lists_arrays_and_columns():
    import pandas
    import polars

    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.add(polars.Series(["mug", "cup"]), under="home/kitchen")
    agent.retire(pandas.Series(["mug", "kite"]))
    agent.restore(np.array(["mug"]))
    agent.forget(pandas.Index(["kettle"]))
    assert agent.retired == ["kite"]
    assert agent.posterior.model.tree.path("cup")[-2] == "home/kitchen"


def test_heights_change_by_whole_tables_only():
    agent = agent_of(bough.HierTS, bough.GaussianModel(TREE, covariance=bough.by_height([1.0, 2.0, 3.0, 4.0])))
    for change in (lambda: agent.add("mug", under="home/kitchen"), lambda: agent.move("kite", under="home/garden")):
        with pytest.raises(ValueError, match=r"covariances go by height, .* give the whole new tree to adopt"):
            change()
    agent.retire("kite")
    agent.adopt(table(home_kitchen=["kettle", "toaster", "mug"]))
    assert score(agent, "mug")[1] > 0.0


def test_one_untried_row_that_moves_changes_nobody_else():
    rng = np.random.default_rng(0)
    names = [f"{i}/{j}/{k}" for i in range(10) for j in range(20) for k in range(50)]
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(names)), seed=0)
    tried = rng.choice(names[1:], 2_000, replace=False).tolist()
    agent.update(tried, rng.normal(size=2_000))
    before = dict(zip(agent.posterior.model.tree.actions, agent.posterior.action_moments()[0], strict=True))
    agent.adopt(agent.posterior.model.tree.edited(move={"0/0/0": "9/9"}))
    after = dict(zip(agent.posterior.model.tree.actions, agent.posterior.action_moments()[0], strict=True))
    off = [abs(after[name] - before[name]) for name in names if name != "0/0/0"]
    assert max(off) < 1e-12


# -- refits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [bough.HierTS, bough.TS])
def test_refits_go_on_across_changes(policy, tmp_path):
    rng = np.random.default_rng(2)
    agent = policy(bough.GaussianModel(TREE), seed=0, refit=True)
    posterior = agent.posterior
    for _ in range(25):
        agent.update(agent.decide(), float(rng.normal(scale=0.1)))
    assert posterior.model.noise_variance < 0.2
    agent.add("mug", under="home/kitchen")
    agent.retire("kite")
    for _ in range(20):
        agent.update("mug", float(rng.normal(scale=0.1)))
    agent.adopt(table(home_garden=["rake"]))
    for _ in range(60):
        agent.update(agent.decide(), float(rng.normal(scale=0.1)))
    assert agent.posterior is posterior  # the same one all the time
    assert posterior.model.noise_variance < 0.1
    assert posterior.n_observations == 105
    agent.save(tmp_path / "agent.bough")
    again = policy.load(tmp_path / "agent.bough")
    agent.update("mug", 0.1)
    again.update("mug", 0.1)
    assert_same_scores(agent, again, 1e-9)
    agent.adopt(bough.GaussianModel(TREE, noise_variance=4.0))
    assert posterior.model.noise_variance < 0.2  # refitted at once


# -- what is refused ---------------------------------------------------------------------------

REFUSED = [
    (lambda a: a.add("kite", under="home"), ValueError, "'kite' is there already"),
    (lambda a: a.add("home", under="home"), ValueError, "'home' is there already"),
    (lambda a: a.add(["mug", "mug"], under="home"), ValueError, "'mug' is given twice"),
    (lambda a: a.add("mug", under="cellar"), KeyError, "unknown name 'cellar'"),
    (lambda a: a.add("mug", under="kettle"), ValueError, "'kettle' is an action with rewards"),
    (lambda a: a.add(None, under="home"), ValueError, "None cannot be a node's name"),
    (lambda a: a.add([["mug"]], under="home"), ValueError, "it is not hashable"),
    (lambda a: a.add("mug", under="home", covariance=3.0), ValueError, "covariance is"),
    (lambda a: a.move("cellar", under="home"), KeyError, "unknown name 'cellar'"),
    (lambda a: a.move("kite", under="cellar"), KeyError, "unknown name 'cellar'"),
    (lambda a: a.move("kite", under="spade"), ValueError, "'spade' is an action"),
    (lambda a: a.move("home", under="home/garden"), ValueError, "'home/garden' is 'home' or below it"),
    (lambda a: a.move("home", under="home"), ValueError, "'home' is 'home' or below it"),
    (lambda a: a.move("", under="home"), ValueError, "root"),
    (lambda a: a.retire("cellar"), KeyError, "unknown action 'cellar'"),
    (lambda a: a.retire("home"), KeyError, "'home' is not an action|unknown action 'home'"),
    (lambda a: a.retire(list(TREE.actions)), ValueError, "is the last action that is not retired"),
    (lambda a: a.restore("kite"), ValueError, "'kite' is not retired"),
    (lambda a: a.restore("cellar"), KeyError, "unknown action"),
    (lambda a: a.forget("cellar"), KeyError, "unknown action"),
    (lambda a: a.update("kite", 1.0, at="noon"), ValueError, "noon"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
@pytest.mark.parametrize("policy", [bough.HierTS, bough.TS])
def test_what_is_refused_changes_nothing(policy, number):
    act, error, message = REFUSED[number]
    agent = agent_of(policy, MODELS["gaussian"])
    before, tree = agent.posterior.mean.copy(), agent.posterior.model.tree
    with pytest.raises(error, match=message):
        act(agent)
    assert agent.posterior.model.tree is tree
    np.testing.assert_array_equal(agent.posterior.mean, before)
    assert agent.retired == []


def test_forgetting_what_was_never_tried_does_nothing():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    before = agent.posterior.mean.copy()
    agent.forget(["plane", "spade"])
    np.testing.assert_array_equal(agent.posterior.mean, before)


def test_moving_to_where_it_is_changes_nothing():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    tree = agent.posterior.model.tree
    agent.move("kite", under="toys/air")
    assert agent.posterior.model.tree is tree


# -- threads -----------------------------------------------------------------------------------


def test_decisions_and_rewards_go_on_while_the_catalogue_changes():
    names = [f"{i}/{j}/{k}" for i in range(5) for j in range(10) for k in range(60)]
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(names)), seed=0)
    errors, stop = [], threading.Event()

    def work():
        try:
            while not stop.is_set():
                name = agent.decide()
                agent.update(name, 0.0)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(30):
        agent.add(f"new {i}", under=f"{i % 5}/{i % 10}")
        agent.retire(names[7 * i])
        agent.move(names[7 * i + 1], under=f"{(i + 1) % 5}/3")
        if i % 10 == 0:
            agent.adopt(agent.posterior.model.tree.edited(remove=[names[7 * i + 2]]))
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    assert agent.posterior.n_observations > 0
    assert agent.posterior.model.tree.n_actions == len(names) + 30


def test_a_table_is_adopted_also_while_single_changes_never_cease():
    names = [f"{i}/{j}" for i in range(30) for j in range(60)]
    agent = bough.HierTS(bough.GaussianModel(bough.Tree.from_paths(names)), seed=0)
    stop = threading.Event()

    def change():
        while not stop.is_set():
            agent.retire("3/3")
            with contextlib.suppress(ValueError):  # the new table may have restored it
                agent.restore("3/3")

    thread = threading.Thread(target=change)
    thread.start()
    changes = agent.adopt(bough.Tree.from_paths(names[1:]))  # or this would go on for ever
    stop.set()
    thread.join()
    assert changes.retired == ["0/0"]


def test_refits_and_changes_do_not_wait_for_each_other_for_ever():
    names = [f"{i}/{j}" for i in range(6) for j in range(10)]
    agent = bough.TS(bough.GaussianModel(bough.Tree.from_paths(names)), seed=0, refit=True)
    stop = threading.Event()

    def learn():
        while not stop.is_set():
            agent.update(["0/0", "1/1"], [0.1, -0.1])

    thread = threading.Thread(target=learn, daemon=True)
    thread.start()
    for i in range(30):
        agent.add(f"new {i}", under="3")
    stop.set()
    thread.join(timeout=60)
    assert not thread.is_alive()
    assert agent.posterior.model.tree.n_actions == 90


# -- what reviews have found -------------------------------------------------------------------


def test_a_draw_right_after_a_change_is_one_of_the_new_tree():
    agent = agent_of(bough.HierTS, MODELS["gaussian"], search=True)
    for i in range(20):
        agent.update("kettle", 100.0)
        agent.add(f"new {i}", under="home/kitchen")
        agent.move(f"new {i}", under="toys/air")
        draw = agent.posterior.sample(i)
        assert len(draw) == agent.posterior.model.tree.n_nodes
        assert draw[agent.posterior.model.tree.index("kettle")] > 25.0  # the prior is a few wide


def test_a_retired_action_that_becomes_a_category_is_retired_no_longer(tmp_path):
    for policy in POLICIES:
        agent = policy(MODELS["gaussian"], seed=0)
        agent.update("rake", 1.0)
        agent.retire("kite")
        agent.add([], under="kite")
        assert agent.retired == ["kite"]
        agent.add("red kite", under="kite")
        assert agent.retired == []
        assert len(agent.decide(k=6)) == 6
        agent.save(tmp_path / "agent.bough")
        assert policy.load(tmp_path / "agent.bough").retired == []


def test_retired_actions_keep_their_order():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.retire(["rake", "kite", "kettle"])
    agent.move("kite", under="home/garden")
    assert agent.retired == ["rake", "kite", "kettle"]
    agent.adopt(table(home_kitchen=[], home_garden=["spade"], toys_air=["plane"]))
    assert agent.retired == ["rake", "kite", "kettle", "toaster"]


def test_covariances_of_their_own_follow_their_nodes_through_tables_and_refits():
    sizes = {name: float(i + 1) for i, name in enumerate(TREE.name(node) for node in range(TREE.n_nodes))}
    agent = bough.HierTS(bough.GaussianModel(TREE, covariance=bough.by_node(sizes)), seed=0, refit=True)
    agent.adopt(table(home_kitchen=["toaster"], toys_air=["plane"]))
    agent._refit._follow(agent.posterior.model)
    for model in (agent.posterior.model, agent._refit._given):
        found = model.classes.table[model.classes.of_node]
        for name, size in sizes.items():
            assert found[model.tree.index(name)] == size


def test_ghosts_keep_the_covariance_of_a_depth_that_a_new_prior_lacks():
    agent = agent_of(bough.HierTS, bough.GaussianModel(TREE, covariance=bough.by_depth([1.0, 2.0, 3.0, 4.0])))
    flatter = bough.Tree.from_nested({"home": ["kettle", "toaster"], "toys": ["plane"]})
    changes = agent.adopt(bough.GaussianModel(flatter, covariance=bough.by_depth([9.0, 8.0, 7.0])))
    assert "kite" in changes.retired
    assert agent.posterior.model.classes.table.tolist() == [9.0, 8.0, 7.0, 4.0]


def test_true_is_not_one():
    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.add(1, under="home/kitchen")
    with pytest.raises(ValueError, match="True is there already"):
        agent.add(True, under="home/kitchen")


def test_text_among_integers_is_saved_too(tmp_path):
    tree = bough.Tree.from_parents([-1, 0, 1, 1], ["", "toys", 101, 102])
    agent = bough.HierTS(bough.GaussianModel(tree), seed=0)
    agent.update(101, 1.0)
    agent.add("toys/books", under="toys")
    agent.save(tmp_path / "agent.bough")
    again = bough.HierTS.load(tmp_path / "agent.bough")
    assert list(again.posterior.model.tree.actions) == list(agent.posterior.model.tree.actions)
    again.add(103, under="toys/books")
    again.add(104, under=102)
    again.save(tmp_path / "agent.bough")
    assert bough.HierTS.load(tmp_path / "agent.bough").posterior.model.tree.path(104) == ["", "toys", 102, 104]


def test_an_action_is_not_lost_to_a_reward_that_comes_while_a_table_is_compared(monkeypatch):
    from bough.inference import living

    agent = agent_of(bough.HierTS, MODELS["gaussian"])
    agent.forget("kite")
    plan = living.plan_adoption

    def slow(*arguments):
        found = plan(*arguments)
        agent.update("kite", 1.0)
        return found

    monkeypatch.setattr(living, "plan_adoption", slow)
    with pytest.raises(ValueError, match="'kite' is an action with rewards, and a category"):
        agent.adopt(bough.Tree.from_parents([-1, 0, 1], ["", "kite", "red kite"]))
    assert agent.posterior.n_observations >= 2


def test_what_is_added_and_rewarded_while_a_table_is_compared_is_kept(monkeypatch):
    from bough.inference import living

    agent = agent_of(bough.HierTS, MODELS["gaussian"], search=True)
    plan, added = living.plan_adoption, []

    def slow(*arguments):
        found = plan(*arguments)
        if not added:
            added.append("mug")
            agent.add("mug", under="home/kitchen")
            agent.update("mug", 1.0)
        return found

    monkeypatch.setattr(living, "plan_adoption", slow)
    changes = agent.adopt(table(toys_air=["plane"]))
    assert sorted(changes.retired) == ["kite", "mug"]  # it is compared again, with the mug
    assert agent.posterior.n_observations == 4
