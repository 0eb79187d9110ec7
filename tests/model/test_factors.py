"""Factors: labels in every form, on every tree, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bough

TREE = bough.Tree.from_nested({"kitchen": ["kettle", "toaster"], "garden": ["spade", "rake"]})
BRANDS = {"kettle": "Acme", "spade": "Acme", "toaster": ["Bolt", "Acme"]}


def labels(model, name="brand"):
    """The levels of each action, by name."""
    effects = model.effects
    first, factor = effects.first_of(name), effects.factor(name)
    return {
        action: [
            factor.levels[effect - first]
            for effect in effects.of_action(place).tolist()
            if first <= effect < first + len(factor.levels)
        ]
        for place, action in enumerate(TREE.actions)
    }


WANTED = {"kettle": ["Acme"], "toaster": ["Acme", "Bolt"], "spade": ["Acme"], "rake": []}


@pytest.mark.parametrize(
    "given",
    [
        BRANDS,
        [BRANDS.get(action) for action in TREE.actions],
        np.array([BRANDS.get(action) for action in TREE.actions], dtype=object),
        pd.Series([BRANDS.get(action) for action in TREE.actions], dtype=object),
        pd.Series(BRANDS, dtype=object),
    ],
    ids=["mapping", "list", "array", "series", "series by name"],
)
def test_labels_come_in_every_form(given):
    model = bough.GaussianModel(TREE, factors={"brand": bough.Factor(given, levels=["Acme", "Bolt"])})
    assert labels(model) == WANTED


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_a_frame_has_one_row_for_each_level_of_an_action(make):
    rows = {"sku": ["kettle", "toaster", "toaster", "spade", "rake"], "brand": ["Acme", "Bolt", "Acme", "Acme", None]}
    factor = bough.Factor.from_frame(make(rows), action="sku", level="brand", levels=["Acme", "Bolt"], variance=0.3)
    assert labels(bough.GaussianModel(TREE, factors={"brand": factor})) == WANTED
    assert factor.variance == 0.3


@pytest.mark.parametrize(
    "cells",
    [
        [np.array(["Acme"]), np.array(["Bolt", "Acme"], dtype=object), np.array(["Acme", None], dtype=object), None],
        [{"Acme"}, {"Bolt", "Acme"}, frozenset({"Acme"}), set()],
        [["Acme"], ["Bolt", "Acme"], "Acme", []],
    ],
    ids=["arrays", "sets", "lists"],
)
def test_a_cell_of_a_frame_may_have_several_levels(cells):
    frame = pd.DataFrame({"sku": ["kettle", "toaster", "spade", "rake"], "brand": cells})
    levels = ["Acme", "Bolt"]
    for factor in (
        bough.Factor.from_frame(frame, "sku", "brand", levels=levels),
        bough.Factor(frame.set_index("sku")["brand"], levels=levels),
        bough.Factor(dict(zip(frame["sku"], frame["brand"], strict=True)), levels=levels),
    ):
        assert labels(bough.GaussianModel(TREE, factors={"brand": factor})) == WANTED


def test_a_series_with_several_rows_of_an_action_has_all_its_levels():
    index, brands = ["kettle", "toaster", "toaster", "spade", "rake"], ["Acme", "Bolt", "Acme", "Acme", None]
    factor = bough.Factor(pd.Series(brands, index=index, dtype=object), levels=["Acme", "Bolt"])
    assert labels(bough.GaussianModel(TREE, factors={"brand": factor})) == WANTED
    with pytest.raises(ValueError, match="the index has a null; leave the row out"):
        bough.Factor(pd.Series(["Acme", "Bolt"], index=["kettle", None]))


@pytest.mark.parametrize("kept", [[1, 2, 3], [0, 2], [2, 0, 1], [3]], ids=["range", "gap", "sorted", "last"])
def test_numbers_of_some_rows_are_not_taken_for_actions(kept):
    frame = pd.DataFrame({"sku": [7, 11, 12, 13], "brand": ["Acme", "Bolt", "Acme", "Acme"]})
    with pytest.raises(ValueError, match=r"index has no name.*from_frame.*dict\(zip\(actions, levels\)\)"):
        bough.Factor(frame["brand"][kept])


def test_an_index_with_a_name_has_actions_and_one_of_all_rows_has_none():
    frame = pd.DataFrame({"sku": [7, 11, 12, 13], "brand": ["Acme", "Bolt", "Acme", "Acme"]})
    assert bough.Factor(frame[frame.sku > 10].set_index("sku")["brand"]).labelled == [11, 12, 13]
    assert bough.Factor(frame.assign(sku=range(4)).set_index("sku")["brand"]).labelled == [0, 1, 2, 3]
    assert bough.Factor(frame["brand"]).labelled is None


def test_levels_are_in_the_order_of_labels_and_may_be_pairs_and_numbers():
    department = {name: TREE.path(name)[1] for name in TREE.actions}
    brand = {"kettle": "Acme", "toaster": "Bolt", "spade": "Acme", "rake": "Bolt"}
    pairs = bough.Factor({name: (brand[name], department[name]) for name in TREE.actions})
    assert pairs.levels[0] == ("Acme", "kitchen")
    assert len(pairs.levels) == 4
    assert bough.Factor([3, 1, 3, 2]).levels == (3, 1, 2)
    posterior = bough.Posterior(bough.GaussianModel(TREE, factors={"brand": bough.Factor(brand), "pair": pairs}))
    posterior.update("kettle", 1.0)
    assert posterior.effects("pair", "polars")["level"].to_list()[0] == "('Acme', 'kitchen')"


def test_a_model_keeps_its_factors_in_its_file(tmp_path):
    pairs = bough.Factor({"kettle": ("Acme", 1), "rake": [("Acme", 1), "other"]}, variance=0.0)
    store = bough.Factor(levels=["north", 7], variance=0.25, at_decision=True)
    model = bough.GaussianModel(TREE, factors={"pair": pairs, "store": store})
    model.save(tmp_path / "model.bough")
    again = bough.GaussianModel.load(tmp_path / "model.bough")
    assert labels(again, "pair") == labels(model, "pair")
    assert again.factors["store"].levels == ("north", 7)
    assert [factor.variance for factor in again.factors.values()] == [0.0, 0.25]
    assert [factor.at_decision for factor in again.factors.values()] == [False, True]


def test_labels_go_by_name_to_another_tree():
    model = bough.GaussianModel(TREE, factors={"brand": bough.Factor(BRANDS, levels=["Acme", "Bolt"])})
    other = TREE.edited(add={"mug": "kitchen"}, move={"spade": "kitchen"}, remove=["toaster"])
    moved = model.rehung(other, np.append([0, 1, 2], other.node_names.find_all(list(TREE.actions))))
    by_name = bough.GaussianModel(other, factors=model.factors)
    for one in (moved, by_name):
        found = {name: one.effects.of_action(place).tolist() for place, name in enumerate(other.actions)}
        assert found == {"kettle": [0], "spade": [0], "rake": [], "mug": []}


def test_whole_numbers_that_pandas_made_floats_stay_whole_numbers():
    frame = pd.DataFrame({"sku": ["kettle", "toaster"], "brand": [12, None]})
    assert bough.Factor.from_frame(frame, "sku", "brand").levels == (12,)
    assert bough.Factor(np.array([1.0, 2.0, np.nan, 2.0])).levels == (1, 2)


def test_more_levels_than_there_is_room_for_are_refused_with_the_largest_factor():
    many = bough.Factor(levels=range(100_000), at_decision=True)
    message = r"100,002 levels, of which 'store' has 100,000; there is room for 20,000 in all.*such as 'other'"
    with pytest.raises(ValueError, match=message):
        bough.GaussianModel(TREE, factors={"brand": bough.Factor(BRANDS), "store": many})
    log = bough.Statistics.from_rows(["kettle"] * 20_001, [1.0] * 20_001, factors={"user": range(20_001)})
    with pytest.raises(ValueError, match=r"20,001 levels, of which 'user' has 20,001; there is room for 20,000"):
        bough.fit_prior(TREE, log, factors={"user": "user"})
    most = bough.Factor(levels=range(20_000), at_decision=True)
    assert bough.GaussianModel(TREE, factors={"user": most}).effects.n == 20_000


def test_a_set_of_levels_has_one_order():
    assert bough.Factor({"kettle": {"new", "big", "red"}}).levels == ("big", "new", "red")
    assert bough.Factor({"kettle": {"1", 1}}).levels == (1, "1")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: bough.Factor({"A", "B", "C"}), r"labels is \{'A', 'B', 'C'\}, a set, which has no order; give a map"),
        (lambda: bough.Factor(levels=frozenset("AB"), at_decision=True), "levels is frozenset.*, a set, which has no"),
        (lambda: bough.Statistics.from_rows(["a"], [1.0], factors={"store": {"n"}}), "level of 'store' is .*, a set"),
        (lambda: shop().update(["kettle", "rake"], [1.0, 2.0], factors={"store": {"n", "s"}}), "'store' is .*, a set"),
        (lambda: shop().update("kettle", 1.0, factors={"store": {"n"}}), "level of 'store' is {'n'}, a set"),
        (lambda: shop().add(["x", "y"], "garden", factors={"brand": {"Acme", "Bolt"}}), "'brand' is .*, a set"),
        (lambda: shop().update("kettle", 1.0, factors={"store": {"n": 1}}), "'store' is {'n': 1}; give one for all"),
    ],
)
def test_a_set_is_no_column(given, message):
    with pytest.raises(ValueError, match=message):
        given()


def shop():
    store = bough.Factor(levels=["n", "s"], at_decision=True)
    return bough.HierTS(bough.GaussianModel(TREE, factors={"brand": bough.Factor(BRANDS), "store": store}), seed=0)


def test_columns_of_pyarrow_are_read_as_others_are():
    table = pa.table({"brand": ["Acme", "Bolt", None, "Acme"], "store": ["n", "s", "n", "s"]})
    assert table["brand"].type == pa.string()
    assert bough.Factor(table["brand"]).levels == ("Acme", "Bolt")
    assert bough.Factor(table["brand"].dictionary_encode()).levels == ("Acme", "Bolt")
    assert bough.Factor(levels=table["store"].slice(0, 2), at_decision=True).levels == ("n", "s")
    assert bough.Factor({"kettle": table["store"]}).levels == ("n", "s")
    agent = shop()
    agent.update(list(TREE.actions), [1.0] * 4, factors={"store": table["store"]})
    sums = bough.Statistics.from_rows(list(TREE.actions), [1.0] * 4, factors={"store": table["store"]})
    assert sums.factors["store"].tolist() == ["n", "s", "n", "s"]
    agent.add(["mug", "jug"], "kitchen", factors={"brand": table["brand"].slice(0, 2)})
    assert agent.posterior.effects("store", "polars")["observations"].to_list() == [2, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda: bough.Factor(), "needs labels"),
        (lambda: bough.Factor(pd.DataFrame({"sku": ["kettle"], "brand": ["Acme"]})), "give bough.Factor.from_frame"),
        (lambda: bough.Factor("Acme"), "give a mapping from actions to levels"),
        (lambda: bough.Factor({"kettle": 1.5}), "a level is 1.5"),
        (lambda: bough.Factor({"kettle": True}), "a level is True"),
        (lambda: bough.Factor({"kettle": ("x", True)}), "a level is"),
        (lambda: bough.Factor({"kettle": {"a": 1}}), "give its level, or a list"),
        (lambda: bough.GaussianModel(TREE, factors={"noise": bough.Factor(BRANDS)}), "a factor is called 'noise'"),
        (lambda: bough.Factor({"kettle": "A"}, variance=-1.0), "variance of a factor is -1.0"),
        (lambda: bough.Factor({"kettle": "A"}, variance=float("nan")), "variance of a factor is nan"),
        (lambda: bough.Factor({"kettle": "A"}, levels=["B"]), "'A', which is not among the levels"),
        (lambda: bough.Factor({"kettle": "A"}, levels=["A", "A"]), "levels has 'A' twice"),
        (lambda: bough.Factor({"kettle": "A"}, levels="A"), "give a list of their names"),
        (lambda: bough.Factor(at_decision=True), "give levels"),
        (lambda: bough.Factor({"kettle": "A"}, levels=["A"], at_decision=True), "leave them out"),
        (lambda: bough.Factor(at_decision="yes", levels=["a"]), "at_decision is 'yes'"),
        (lambda: bough.GaussianModel(TREE, factors={"brand": "Acme"}), "give a bough.Factor"),
        (lambda: bough.GaussianModel(TREE, factors=bough.Factor(BRANDS)), "give a mapping"),
        (lambda: bough.GaussianModel(TREE, factors={3: bough.Factor(BRANDS)}), "a factor is called 3"),
        (lambda: bough.GaussianModel(TREE, factors={"brand": bough.Factor({"kettel": "A"})}), "did you mean 'kettle'"),
        (
            lambda: bough.GaussianModel(TREE, factors={"brand": bough.Factor({"kitchen": "A"})}),
            "a category and no action",
        ),
        (lambda: bough.GaussianModel(TREE, factors={"brand": bough.Factor(["A"])}), "1 labels and the tree 4 actions"),
        (lambda: bough.GaussianModel(TREE, mean=[0.0], factors={"brand": bough.Factor(BRANDS)}), "mean is a vector"),
        (lambda: bough.GaussianModel(TREE, drift=5.0, factors={"brand": bough.Factor(BRANDS)}), "drift is 5.0"),
        (lambda: bough.BernoulliModel(TREE, factors={"brand": bough.Factor(BRANDS)}), "go with a bough.GaussianModel"),
        (lambda: bough.PoissonModel(TREE, factors={"brand": bough.Factor(BRANDS)}), "go with a bough.GaussianModel"),
        (lambda: bough.Factor.from_frame([1], "a", "b"), "frame is a list"),
        (
            lambda: bough.Factor.from_frame(pl.DataFrame({"a": ["kettle"], "b": [1.5]}), "a", "b"),
            "a level in the column 'b' is 1.5, a float",
        ),
        (lambda: bough.Factor.from_frame(pl.DataFrame({"a": [1]}), "a", "b"), "no column 'b'"),
    ],
)
def test_what_is_no_factor_is_refused_with_the_remedy(given, message):
    with pytest.raises((ValueError, KeyError), match=message):
        given()
