"""Files damaged at random and crafted to mislead: each loads as what it was, or is refused, and costs little.

`python tests/support/file_fuzz.py 10000` tries that many and prints what came of them.
"""

import copy
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import bough
from file_parts import Entry, npy, npy_header, npy_of, zipped
from places import FIXTURES

MOST_MEMORY = 200_000_000  # bytes that a file may take to be loaded or refused
BOMB = 50_000_000  # bytes that a bomb's array has


@dataclass(frozen=True)
class Original:
    """A sound file, and what is in it."""

    kind: str
    content: bytes
    arrays: dict[str, np.ndarray]
    header: dict[str, Any]
    load: Callable[[Path], Any]
    facts: dict[str, Any]

    def entries(self, **changed: Any) -> list[Entry]:
        """Its members, with some changed: arrays, or the bytes of a member."""
        parts = {"header": npy_header(self.header), **self.arrays, **changed}
        return [Entry.of(f"{name}.npy", one if isinstance(one, bytes) else npy(one)) for name, one in parts.items()]

    def some(self, rng: np.random.Generator, kinds: str = "bifu") -> str:
        """The name of an array of one of these kinds."""
        return str(rng.choice([name for name, array in self.arrays.items() if array.dtype.kind in kinds]))


@dataclass(frozen=True)
class Damaged:
    """A file that was changed."""

    content: bytes
    may_differ: bool = False
    """Whether it may be a sound file with other content: what was changed is not damage but data."""


def facts(loaded: Any) -> dict[str, Any]:
    """What must be the same for two loaded objects to be the same."""
    if isinstance(loaded, bough.Statistics):
        sums = {"exposure": loaded.exposure_or_count, "sum_xx": 0.0 if loaded.sum_xx is None else loaded.sum_xx}
        sums |= {"sum_xy": 0.0 if loaded.sum_xy is None else loaded.sum_xy}
        return {**sums, "count": loaded.count, "sum_y": loaded.sum_y, "sum_yy": loaded.sum_yy} | {
            "names": loaded.actions.tolist(), "skipped": dict(loaded.skipped),
            "features": None if loaded.features is None else list(loaded.features),
        }  # fmt: skip
    if isinstance(loaded, bough.Simulation):
        return {"n_actions": loaded.n_actions, "best": loaded.best} | {
            what: getattr(loaded, what) for what in ("regret", "tried", "seconds")
        }
    if isinstance(loaded, bough.BetaTS):
        counts = {"successes": loaded.successes, "failures": loaded.failures, "n": loaded.n_observations}
        return {**facts(loaded.model), **counts, **_agent_facts(loaded)}
    if isinstance(loaded, bough.HierTS):
        given = {} if loaded._refit is None else {"given": facts(loaded._refit._given)}
        given |= {} if loaded._star is None else {"whole": facts(loaded._star.whole)}
        return {**facts(loaded.posterior), **given, **_agent_facts(loaded), "options": loaded._options}
    model = loaded.model if isinstance(loaded, bough.Posterior) else loaded
    found = {
        "kind": type(model).__name__,
        "names": [model.tree.name(node) for node in range(model.tree.n_nodes)],
        "parents": model.tree.parent,
        "levels": str(model.tree.levels),
        "sep": model.tree.sep,
        "prior mean": model.mean,
        "marginal": model.marginal_covariance,
        "noise": getattr(model, "noise_variance", None),
        "drift": str(getattr(model, "drift", None)),
        "features": None if model.feature_names is None else list(model.feature_names),
        "encoder": model.features.contents() if isinstance(model.features, bough.Features) else str(model.features),
    }
    if isinstance(loaded, bough.Posterior):
        found |= {"mean": loaded.mean, "covariance": loaded.covariance, "count": loaded.count}
        found |= {"log evidence": loaded.log_evidence(), "now": str(loaded.now), "half-life": str(loaded.half_life)}
    return found


def _agent_facts(agent: Any) -> dict[str, Any]:
    """What a policy has beside what it knows."""
    twin = copy.deepcopy(agent)
    decided = [str(twin.decide(_context(agent))) for _ in range(20)]
    return {"policy": type(agent).__name__, "decisions": decided, "retired": [str(name) for name in agent.retired]}


def _context(agent: Any) -> Any:
    """A context that an agent may decide in; None where it takes none."""
    return None if agent._model.is_scalar else np.ones(agent._model.dim)


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    def equal(one: Any, other: Any) -> bool:
        if isinstance(one, dict) and isinstance(other, dict):
            return same(one, other)
        if isinstance(one, (str, list, dict, type(None))) or isinstance(other, (str, list, dict, type(None))):
            return bool(one == other)
        return np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-6, atol=1e-9)

    return found.keys() == expected.keys() and all(equal(found[key], expected[key]) for key in found)


def is_sound(loaded: Any) -> bool:
    """Whether an object that came of other data is one that can be used."""
    if isinstance(loaded, bough.Statistics):
        return bool((loaded.count > 0.0).all() and np.isfinite(loaded.sum_y).all() and np.isfinite(loaded.sum_yy).all())
    if isinstance(loaded, bough.Simulation):
        return all(bool(np.isfinite(loaded.standard_error(name)).all()) for name in loaded.regret)
    if isinstance(loaded, bough.BetaTS):
        loaded.update([loaded.model.tree.actions[0]] * 2, [1, 0])
        counts = np.concatenate([loaded.successes, loaded.failures])
        return bool(np.isfinite(counts).all() and (counts > 0.0).all() and loaded.decide() in loaded.model.tree.actions)
    if isinstance(loaded, bough.HierTS):
        context = _context(loaded)
        sound = is_sound(loaded.posterior) and loaded.decide(context) in loaded.posterior.model.tree.actions
        sound = sound and not {loaded.decide(context) for _ in range(5)} & set(loaded.retired)
        sound = sound and (loaded._star is None or is_sound(loaded._star.whole))
        loaded.update(loaded.posterior.model.tree.actions[0], 1.0, context)
        return sound and (loaded._refit is None or is_sound(loaded._refit._given))
    if not isinstance(loaded, bough.Posterior):
        return bool(np.isfinite(loaded.marginal_covariance).all())
    mean, covariance, tree = loaded.mean, loaded.covariance, loaded.model.tree
    variance = covariance if loaded.model.is_scalar else np.diagonal(covariance, axis1=1, axis2=2)
    sound = np.isfinite(mean).all() and np.isfinite(covariance).all() and (loaded.count >= 0).all()
    sound = sound and (variance >= -1e-9 * np.abs(covariance).max()).all()
    best = loaded.best_actions(0, None if loaded.model.is_scalar else np.ones(loaded.model.dim))
    return bool(sound and (best is None or np.isin(best.nodes, tree.leaves).all()))


@cache
def originals() -> tuple[Original, ...]:
    nested = {"thé": ["vert", "noir", "blanc"], "café": {"chaud": ["court", "long"]}}
    named = bough.Tree.from_nested(nested, sep=" › ", levels=["sorte", "façon", "boisson"])
    numbers = bough.Tree.from_nested({"tea": [3, 1], "coffee": [2, 7]})
    actions, rewards = ["vert", "noir", "court", "vert", "long"], [0.5, 1.5, -1.0, 0.7, 0.1]
    contexts = np.random.default_rng(0).normal(size=(5, 3))
    clicks, trials = [1, 0, 3, 2, 1], [2, 1, 9, 4, 1]
    prior = np.array([2.0, 1.0, 0.5])
    features = bough.Features(["âge"], [40.0], [12.5], {"pays": ["de", "fr"]})
    models = {
        "scalar": bough.GaussianModel(named, 0.5, bough.by_depth([2.0, 1.0, 0.5, 0.3]), 0.3),
        "vector": bough.GaussianModel(named, prior, bough.by_height([np.diag(prior), 1.0, np.zeros((3, 3)), 2.0]), 0.3),
        "named": bough.GaussianModel(named, prior, 1.0, 0.3, features=["intercept", "âge", "price"]),
        "clicks": bough.BernoulliModel(named, -1.0, bough.by_node({"thé": 2.0}, default=0.5)),
        "counts": bough.PoissonModel(named, 0.5, 0.5),
        "contextual clicks": bough.BernoulliModel(named, prior, 0.5),
        "numbered": bough.GaussianModel(bough.Tree.balanced(3, 2)),
    }
    rows = {
        "scalar": {"reward": rewards},
        "vector": {"reward": rewards, "context": contexts},
        "named": {"reward": rewards, "context": contexts},
        "clicks": {"reward": clicks, "trials": trials},
        "counts": {"reward": clicks, "exposure": trials},
        "contextual clicks": {"reward": clicks, "trials": trials, "context": contexts},
        "numbered": {"reward": rewards},
    }
    sources: list[tuple[str, Any, Any]] = []
    for kind, model in models.items():
        posterior = bough.Posterior(model)
        posterior.update([4, 5, 6, 4, 12] if kind == "numbered" else actions, **rows[kind])
        sources.append((f"posterior, {kind}", posterior, bough.Posterior.load))
    sources += [
        ("model, integers", bough.PoissonModel(numbers, 0.5, bough.by_node([4.0, 1.0, 2.0, 1.0, 3.0, 0.0, 1.0])), None),
        ("model, vector", models["vector"], None),
        ("model, numbered", models["numbered"], None),
        ("model, encoded", bough.PoissonModel(named, np.zeros(5), 0.5, features=features), None),
        (
            "statistics, named",
            bough.Statistics.from_rows(actions, rewards, contexts, features=["intercept", "âge", "price"]),
            bough.Statistics.load,
        ),
        ("statistics", bough.Statistics.from_rows(actions, rewards, contexts), bough.Statistics.load),
        (
            "statistics, clicks",
            bough.Statistics.from_rows([1, 2, 3, 1, 9], clicks, trials=trials),
            bough.Statistics.load,
        ),
    ]
    run = bough.simulate(models["numbered"], {"TS": bough.TS, "Größte": bough.Greedy}, rounds=5, runs=3, seed=0)
    sources.append(("simulation", run, bough.Simulation.load))
    sources += [(f"agent, {kind}", agent, type(agent).load) for kind, agent in _agents(models).items()]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "original.bough"
        found = [_original(kind, thing, load or bough.GaussianModel.load, path) for kind, thing, load in sources]
    loads = {"posterior": bough.Posterior.load, "model": bough.GaussianModel.load, "statistics": bough.Statistics.load}
    old = sorted((FIXTURES / "version1").glob("*.bough"))
    found += [_read(f"version 1, {path.stem}", loads[path.stem.split("-")[0]], path) for path in old]
    return tuple(found)


def _agents(models: dict[str, Any]) -> dict[str, Any]:
    """Policies that have learned something, and made some decisions."""
    agents = {
        "HierTS": bough.HierTS(models["scalar"], seed=1),
        "HierTS that refits": bough.HierTS(models["scalar"], np.random.Generator(np.random.MT19937(2)), refit=True),
        "BetaTS": bough.BetaTS(models["clicks"], np.random.Generator(np.random.Philox(3))),
        "TS": bough.TS(models["scalar"], seed=5),
        "HierTS that forgets": bough.HierTS(models["clicks"], seed=6, half_life=timedelta(days=3)),
        "HierTS that drifts": bough.HierTS(bough.GaussianModel(models["scalar"].tree, drift=9.0), seed=7),
    }
    agents["HierTS that forgets"].now = datetime(2026, 1, 1)
    agents["HierTS that drifts"].update("long", 0.5, at=1.0)
    rng = np.random.default_rng(4)
    for agent in agents.values():
        for _ in range(30):
            agent.update(agent.decide(), float(rng.integers(2)))
        agent.retire(["court", "blanc"])
    agents["TS with features"] = bough.TS(models["named"], seed=8)
    agents["TS with features"].update("long", 0.5, {"âge": 0.3, "price": 2.0})
    for name in ("TS", "HierTS that drifts"):
        agents[name].add([11, "rouge"], under="thé")  # integers among text
    agents["HierTS that forgets"].now = datetime(2026, 1, 2, 12)
    agents["HierTS that drifts"].now = 4.0
    return agents


def _original(kind: str, thing: Any, load: Callable[[Path], Any], path: Path) -> Original:
    thing.save(path)
    return _read(kind, load, path)


def _read(kind: str, load: Callable[[Path], Any], path: Path) -> Original:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    return Original(kind, path.read_bytes(), arrays, header, load, facts(load(path)))


# -- damage: the bytes of a file ---------------------------------------------------------------------


def flipped_bits(one: Original, rng: np.random.Generator) -> Damaged:
    content = bytearray(one.content)
    for _ in range(int(rng.integers(1, 5))):
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return Damaged(bytes(content))


def flipped_bits_of_the_directory(one: Original, rng: np.random.Generator) -> Damaged:
    content = bytearray(one.content)
    start = content.index(b"PK\x01\x02")
    content[rng.integers(start, len(content))] ^= 1 << int(rng.integers(8))
    return Damaged(bytes(content))


def cut_at_the_end(one: Original, rng: np.random.Generator) -> Damaged:
    return Damaged(one.content[: rng.integers(len(one.content))])


def cut_from_the_middle(one: Original, rng: np.random.Generator) -> Damaged:
    start, end = np.sort(rng.integers(len(one.content), size=2))
    end = start + 1 + (end - start) // int(rng.choice([1, 10, 100]))
    return Damaged(one.content[:start] + one.content[end:])


def swapped_blocks(one: Original, rng: np.random.Generator) -> Damaged:
    a, b, c, d = np.sort(rng.integers(len(one.content) + 1, size=4))
    content = one.content
    return Damaged(content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:])


def overwritten_bytes(one: Original, rng: np.random.Generator) -> Damaged:
    size = int(rng.integers(1, 65))
    start = int(rng.integers(len(one.content) - size))
    filling = bytes(size) if rng.random() < 0.5 else rng.bytes(size)
    return Damaged(one.content[:start] + filling + one.content[start + size :])


def inserted_bytes(one: Original, rng: np.random.Generator) -> Damaged:
    start = int(rng.integers(len(one.content)))
    return Damaged(one.content[:start] + rng.bytes(int(rng.integers(1, 65))) + one.content[start:])


# -- the zip -----------------------------------------------------------------------------------------


def member_removed(one: Original, rng: np.random.Generator) -> Damaged:
    entries = one.entries()
    del entries[rng.integers(len(entries))]
    return Damaged(zipped(entries), may_differ="statistics" in one.kind)


def member_renamed(one: Original, rng: np.random.Generator) -> Damaged:
    entries = one.entries()
    chosen = entries[rng.integers(len(entries))]
    other = entries[rng.integers(len(entries))]
    name = str(rng.choice(["other.npy", "", "../header.npy", chosen.name.upper(), "a\0b.npy", other.name, "é" * 300]))
    if rng.random() < 0.5:
        chosen.directory_name = name
    else:
        chosen.name = name
    return Damaged(zipped(entries), may_differ="statistics" in one.kind)


def member_duplicated(one: Original, rng: np.random.Generator) -> Damaged:
    entries = one.entries()
    twin = entries[rng.integers(len(entries))]
    entries.insert(int(rng.integers(len(entries) + 1)), twin)
    return Damaged(zipped(entries))


def members_exchanged(one: Original, rng: np.random.Generator) -> Damaged:
    entries = one.entries()
    first, second = rng.choice(len(entries), 2, replace=False)
    entries[first].name, entries[second].name = entries[second].name, entries[first].name
    return Damaged(zipped(entries), may_differ=True)


def thousands_of_members(one: Original, rng: np.random.Generator) -> Damaged:
    extra = Entry.of("more", b"")
    entries = [Entry(f"more{i}", extra.data, 0, 0) for i in range(int(rng.integers(1_000, 30_000)))]
    return Damaged(zipped(one.entries() + entries))


def directory_that_lies(one: Original, rng: np.random.Generator) -> Damaged:
    entries = one.entries()
    chosen = entries[rng.integers(len(entries))]
    size = int(rng.choice([0, 1, 100, 10**6, 2**31, 2**32 - 1]))
    match int(rng.integers(6)):
        case 0:
            chosen.size = size
        case 1:
            chosen.claimed = size
        case 2:
            chosen.checksum ^= 1 << int(rng.integers(32))
        case 3:
            chosen.method = int(rng.choice([0, 1, 9, 12, 14, 93, 99]))
        case 4:
            chosen.flags = 1 << int(rng.integers(16))
        case 5:
            chosen.offset = int(rng.choice([-(10**6), -1, 1, 1000, 2**31]))
    return Damaged(zipped(entries))


# -- arrays ------------------------------------------------------------------------------------------


def another_type(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    dtype = rng.choice(["?", "<i1", ">i4", "<i8", "<u8", "<f2", "<f4", ">f8", "<f16", "<c16", "<M8[s]", "<U3", "S4"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = one.arrays[name].astype(dtype)
    return Damaged(zipped(one.entries(**{name: array})), may_differ=True)


def another_shape(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    array = one.arrays[name]
    flat = array.reshape(-1)
    choices = [flat, array[None], array[..., None], flat[:0], np.append(flat, flat[:1]), np.asfortranarray(array.T)]
    choices += [array[1:], np.concatenate([array, array])] if array.ndim else []
    return Damaged(zipped(one.entries(**{name: choices[rng.integers(len(choices))]})), may_differ=True)


def huge_shape(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    array = one.arrays[name]
    size = int(rng.choice([10**6, 2**31 - 1, 2**31, 2**40, 2**63, 10**30]))
    shape = (size, *array.shape[1:]) if array.ndim else (size,)
    member = npy_of(f"{{'descr': '{array.dtype.str}', 'fortran_order': False, 'shape': {shape}, }}", array.tobytes())
    entries = one.entries(**{name: member})
    for entry in entries:
        if entry.name == f"{name}.npy" and rng.random() < 0.5:  # have the directory agree, as far as it can
            entry.size = min(len(member) + (size - len(array.reshape(-1))) * array.itemsize, 2**32 - 1)
    return Damaged(zipped(entries))


FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 1e-320, 1e-160, 1e149, 1e160, 1e300, 1.7e308, -1e149, -1.7e308]
INTEGERS = [-1, 0, 1, 2, 7, 100, -(2**31), 2**31 - 1, 2**31, 2**62, -(2**63)]


def special_values(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    array = one.arrays[name].copy()
    flat = array.reshape(-1)
    n = min(len(flat), int(rng.choice([1, 2, 1000])))
    if array.dtype.kind == "f":
        flat[rng.choice(len(flat), n, replace=False)] = rng.choice(FLOATS, n)
    elif array.dtype == np.uint8:
        flat[rng.choice(len(flat), n, replace=False)] = rng.integers(256, size=n)
    else:
        array = array.astype(np.int64)
        array.reshape(-1)[rng.choice(len(flat), n, replace=False)] = rng.choice(INTEGERS, n)
    return Damaged(zipped(one.entries(**{name: array})), may_differ=True)


def perturbed_values(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng, "f")
    array = one.arrays[name]
    factor = 1.0 + rng.choice([1e-9, 1e-5, 0.1, 10.0]) * rng.normal(size=array.shape)
    return Damaged(zipped(one.entries(**{name: array * factor})), may_differ=True)


def shuffled_rows(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    return Damaged(zipped(one.entries(**{name: rng.permutation(np.atleast_1d(one.arrays[name]))})), may_differ=True)


# -- text: the header, and the descriptions of arrays ------------------------------------------------

VALUES = [
    None, True, False, 0, 1, -1, 2, 99, 0.5, 1.0, 1e-300, 1e300, 1e999, 10**400, "", "1", "depth", "height", "node",
    "gaussian", "bernoulli", "poisson", "model", "posterior", "statistics", "agent", "HierTS", "TS", "BetaTS", [], [1],
    {}, {"a": 1}, {"refit": True}, {"noise_variance": 1.0}, {"bit_generator": "MT19937"}, "x" * 10_000,
]  # fmt: skip


def header_entry(one: Original, rng: np.random.Generator) -> Damaged:
    key = str(rng.choice([*one.header, "more"]))
    changed = {**one.header, key: VALUES[rng.integers(len(VALUES))]}
    return Damaged(zipped(one.entries(header=npy_header(changed))), may_differ=True)


def header_inside_an_entry(one: Original, rng: np.random.Generator) -> Damaged:
    """Something changed in an entry that has entries, such as the state of an agent's generator."""
    changed = copy.deepcopy(one.header)
    inner, places = changed, [key for key, value in changed.items() if isinstance(value, dict) and value]
    while places:
        inner = inner[places[rng.integers(len(places))]]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        places = [key for key in keys if isinstance(inner[key], (dict, list)) and inner[key] and rng.random() < 0.7]
    keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
    key = keys[rng.integers(len(keys))]
    if rng.random() < 0.2:
        del inner[key]
    else:
        values = [*VALUES, 625, -5, 2**32, 2**64, 2**128]
        inner[key] = values[rng.integers(len(values))]
    return Damaged(zipped(one.entries(header=npy_header(changed))), may_differ=True)


def header_without_an_entry(one: Original, rng: np.random.Generator) -> Damaged:
    gone = str(rng.choice(list(one.header)))
    changed = {key: value for key, value in one.header.items() if key != gone}
    # What is not there has one meaning or none, but a tree may do without names of levels and another separator.
    return Damaged(zipped(one.entries(header=npy_header(changed))), may_differ=gone in ("levels", "sep"))


def header_of_another_kind(one: Original, rng: np.random.Generator) -> Damaged:
    deep = int(rng.choice([100, 10_000, 400_000]))
    choices = [b"", b"null", b"[]", b"5", b'"x"', b"[" * deep + b"]" * deep, b'{"a":' * deep + b"1" + b"}" * deep]
    choices += [b"9" * deep, b" " * 1_000_001 + b"{}", b"\xff\xfe{}", json.dumps(one.header).encode("utf-16"), b"NaN"]
    return Damaged(zipped(one.entries(header=npy_header(choices[rng.integers(len(choices))]))), may_differ=True)


def header_text(one: Original, rng: np.random.Generator) -> Damaged:
    return Damaged(zipped(one.entries(header=npy_header(_scribbled(json.dumps(one.header).encode(), rng)))), True)


def description_text(one: Original, rng: np.random.Generator) -> Damaged:
    name = str(rng.choice(["header", *one.arrays]))
    member = npy_header(one.header) if name == "header" else npy(one.arrays[name])
    end = member.index(b"\n") + 1
    return Damaged(zipped(one.entries(**{name: _scribbled(member[:end], rng) + member[end:]})), may_differ=True)


def odd_description(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    shape = one.arrays[name].shape
    texts = [
        "(" * 9_000, "[" * 9_000 + "]" * 9_000, "{'descr': '<f8", "'\\d'", "", "\0", "{}", "1" * 9_000,
        f"{{'descr': '|O', 'fortran_order': False, 'shape': {shape}, }}",
        f"{{'descr': [('a', '<f8'), ('b', '<i4')], 'fortran_order': False, 'shape': {shape}, }}",
        f"{{'descr': '<f8', 'fortran_order': 1, 'shape': {shape}, }}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, ), }",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'1, ' * 20}), }}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'1, ' * 3_000}), }}",
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'9' * 5_000}, ), }}",
        f"{{'descr': '<f99999999999', 'fortran_order': False, 'shape': {shape}, }}",
        f"{{'descr': '<V8', 'fortran_order': False, 'shape': {shape}, }}",
    ]  # fmt: skip
    member = npy_of(str(rng.choice(texts)), one.arrays[name].tobytes())
    return Damaged(zipped(one.entries(**{name: member})))


def _scribbled(text: bytes, rng: np.random.Generator) -> bytes:
    """The text with characters replaced, put in or taken out."""
    out = bytearray(text)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(out)))
        new = bytes([rng.choice(list(b"0123456789-+.,:'\"()[]{}<>|=eTF \n\0\xff"))])
        out[place : place + int(rng.integers(2))] = new if rng.random() < 0.8 else b""
    return bytes(out)


# -- bombs -------------------------------------------------------------------------------------------


@cache
def _bomb(dtype: str, shape: tuple[int, ...], filling: int = 0, first: int = 0, last: int = 0) -> Entry:
    array = np.full(shape, filling, dtype=dtype)
    array.reshape(-1)[[0, -1]] = first, last
    return Entry.of("bomb.npy", npy(array), level=1)


def bomb_that_nobody_asks_for(one: Original, _rng: np.random.Generator) -> Damaged:
    return Damaged(zipped([*one.entries(), _bomb("|u1", (BOMB,))]))


def bomb_that_is_asked_for(one: Original, rng: np.random.Generator) -> Damaged:
    name = one.some(rng)
    array = one.arrays[name]
    n = BOMB // array.itemsize
    shape = (n // max(int(np.prod(array.shape[1:])), 1), *array.shape[1:])
    # A tree may be a star or a path, and then the bomb is one.
    fillings = [(0, 0, 0), (0, n - 1, 0), (1, 1, 0)] if name == "n_children" else [(0, 0, 0)]
    bomb = _bomb(array.dtype.str, shape, *fillings[rng.integers(len(fillings))])
    entries = one.entries()
    for i, entry in enumerate(entries):
        if entry.name == f"{name}.npy":
            entries[i] = Entry(entry.name, bomb.data, bomb.size, bomb.checksum)
    return Damaged(zipped(entries), may_differ=True)


COMMON: tuple[Callable[[Original, np.random.Generator], Damaged], ...] = (
    flipped_bits, flipped_bits_of_the_directory, cut_at_the_end, cut_from_the_middle, swapped_blocks, overwritten_bytes,
    inserted_bytes, member_removed, member_renamed, member_duplicated, members_exchanged, directory_that_lies,
    another_type, another_shape, huge_shape, special_values, special_values, special_values, perturbed_values,
    shuffled_rows, header_entry, header_entry, header_inside_an_entry, header_without_an_entry,
    header_of_another_kind, header_text, description_text, odd_description,
)  # fmt: skip
COSTLY = (thousands_of_members, bomb_that_nobody_asks_for, bomb_that_is_asked_for)  # these are tried less often


# -- the runs ----------------------------------------------------------------------------------------


@dataclass
class Summary:
    """What came of a run."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[int, str] = (0, "")

    def __str__(self) -> str:
        words = ("the same", "other data", "refused")
        lines = [f"{'':32}" + "".join(f"{word:>12}" for word in words)]
        total: Counter[str] = sum(self.outcomes.values(), Counter())
        for what, found in [*sorted(self.outcomes.items()), ("all", total)]:
            lines.append(f"{what:32}" + "".join(f"{found[word]:12,}" for word in words))
        lines.append(f"the slowest took {self.slowest[0]:.2f} s ({self.slowest[1]})")
        lines.append(f"the largest took {self.largest[0] / 1e6:.1f} MB ({self.largest[1]})")
        return "\n".join([*lines, f"{len(self.failures)} failures", *self.failures])


def cases(n: int, seed: int) -> Iterator[tuple[str, Original, Damaged]]:
    """n changed files, with what was changed in each."""
    sources = originals()
    for i in range(n):
        rng = np.random.default_rng([seed, i])
        pool = COSTLY if i % 50 == 0 else COMMON
        original, mutation = sources[rng.integers(len(sources))], pool[rng.integers(len(pool))]
        yield mutation.__name__.replace("_", " "), original, mutation(original, rng)


def run(n: int, seed: int, folder: Path) -> Summary:
    """Load n changed files, and see that each is what it was, other sound data, or refused by a `ValueError`."""
    summary = Summary()
    for i, (what, original, damaged) in enumerate(cases(n, seed)):
        path = folder / "changed.bough"
        path.write_bytes(damaged.content)
        where = f"{what} of {original.kind}, file {i} of seed {seed}"
        outcome = _outcome(original, damaged, path, where, summary)
        if outcome not in ("the same", "other data", "refused"):
            summary.failures.append(f"{where}: {outcome}")
        summary.outcomes.setdefault(what, Counter())[outcome] += 1
    return summary


def _outcome(original: Original, damaged: Damaged, path: Path, where: str, summary: Summary) -> str:
    loaded, message = None, None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tracemalloc.start()
        start = time.perf_counter()
        try:
            loaded = original.load(path)
        except ValueError as error:
            message = str(error)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"raised {type(error).__name__}: {error}"
        finally:
            seconds, memory = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            summary.slowest = max(summary.slowest, (seconds, where))
            summary.largest = max(summary.largest, (memory, where))
        if memory > MOST_MEMORY:
            return f"took {memory:,} bytes"
        if message is not None:
            return "refused" if str(path) in message and len(message) < 1_000 else f"refused with {message!r}"
        try:
            if same(facts(loaded), original.facts):
                return "the same"
            if not damaged.may_differ:
                return "loaded as something else"
            return "other data" if is_sound(loaded) else "loaded, and is of no use"
        except Exception as error:
            return f"loaded, and then raised {type(error).__name__}: {error}"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    with tempfile.TemporaryDirectory() as place:
        result = run(count, int(sys.argv[2]) if len(sys.argv) > 2 else 0, Path(place))
    print(result)
    sys.exit(1 if result.failures else 0)
