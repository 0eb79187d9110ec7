"""The table of policies has all of them, and says of each what is true."""

import inspect

import pytest

import bough
from bough import policy_table
from bough.policies.base import ScoringPolicy
from bough.simulation.compiled_runs import is_compiled


def test_every_public_policy_has_a_line_under_its_own_name():
    public = {
        name
        for name in bough.__all__
        if inspect.isclass(getattr(bough, name)) and issubclass(getattr(bough, name), ScoringPolicy)
    }
    assert public == set(policy_table.POLICIES)
    for name, built_in in policy_table.POLICIES.items():
        assert built_in.name == name
        assert built_in.policy is getattr(bough, name)
        assert policy_table.find_built_in(built_in.policy) is built_in
    assert len({built_in.colour for built_in in policy_table.POLICIES.values()}) == len(public)


def test_a_class_derived_from_a_policy_is_not_taken_for_it():
    class Mine(bough.HierTS):
        """Does something else than the kernel would."""

    assert policy_table.find_built_in(Mine) is None
    assert not is_compiled(bough.problems.constant(2, 1), Mine)


def test_an_unknown_policy_is_named_with_those_that_there_are():
    with pytest.raises(ValueError, match="unknown policy 'HeirTS'; there are HierTS, FlatTS, TS, BayesUCB, Greedy"):
        policy_table.named("HeirTS")


SMALL = bough.Tree.balanced(3, 2)
MODELS = {
    "conjugate": bough.GaussianModel(SMALL),
    "other": bough.BernoulliModel(SMALL),
    "conjugate in contexts": bough.GaussianModel(SMALL, [0.0, 0.0]),
    "other in contexts": bough.PoissonModel(SMALL, [0.0, 0.0]),
}


@pytest.mark.parametrize("rewards", MODELS)
@pytest.mark.parametrize("name", policy_table.POLICIES)
def test_what_is_compiled_is_what_the_table_says(name, rewards):
    built_in = policy_table.POLICIES[name]
    assert is_compiled(MODELS[rewards], built_in.policy) == (rewards in built_in.compiled_for)


def test_sampling_a_large_tree_is_left_to_the_policy():
    model = bough.problems.constant(10, 4)
    compiled = {name for name, built_in in policy_table.POLICIES.items() if is_compiled(model, built_in.policy)}
    assert compiled == {"BayesUCB", "Greedy"}
