"""Law and speed of decisions on a GPU: python benchmarks/bench_gpu.py, or with --quick on JAX's CPU.

It needs numpy, scipy and JAX, and bough's `src` on the path; pyarrow for the file figure. Posteriors are made here by
plain algebra, M and eta rootward, so that neither numba nor an installed bough is needed.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def make_importable():
    """Have `import bough` work from a bare checkout, which has no metadata of a package."""
    source = Path(__file__).resolve().parent.parent / "src"
    sys.path.insert(0, str(source))
    from importlib.metadata import PackageNotFoundError, version

    try:
        version("bough")
    except PackageNotFoundError:
        folder = Path(tempfile.mkdtemp())
        (folder / "bough-0.dist-info").mkdir()
        (folder / "bough-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: bough\nVersion: 0\n")
        sys.path.insert(0, str(folder))


make_importable()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.stats import chi2_contingency, ks_2samp  # noqa: E402

from bough.batch import counters, kernels, stages, streams  # noqa: E402
from bough.batch.frozen import Frozen  # noqa: E402
from bough.batch.scorer import Scorer  # noqa: E402

FALSE_ALARM = 1e-4
SEED = (1, 2)


def say(*parts):
    print(*parts, flush=True)


# -- posteriors by plain algebra -------------------------------------------------------------------


def balanced(branching, height):
    """Parents, by node, in breadth-first order."""
    sizes = [branching**depth for depth in range(height + 1)]
    starts = np.cumsum([0, *sizes])
    parent = np.full(starts[-1], -1, dtype=np.int32)
    for depth in range(1, height + 1):
        parent[starts[depth] : starts[depth + 1]] = starts[depth - 1] + np.arange(sizes[depth]) // branching
    return parent


UNEVEN = np.array([-1, 0, 0, 0, 0, 1, 1, 3, 3, 4, 5, 5, 8, 9, 9, 12, 12, 13, 13], dtype=np.int32)


def posterior(parent, roots, n_rows, rng, actions=None):
    """The laws of the touched nodes after rewards of actions at random; a root of a covariance for each depth."""
    n, d = len(parent), roots.shape[1]
    child_start = np.searchsorted(parent[1:], np.arange(n + 1)).astype(np.int32) + 1
    depth, start, end = np.zeros(n, dtype=np.int32), 0, 1
    while end < n:
        start, end = end, int(child_start[end])
        depth[start:end] = depth[start - 1] + 1
    leaves = np.flatnonzero(np.diff(child_start) == 0)
    chosen = rng.choice(leaves, n_rows) if actions is None else leaves[actions]
    x, y = rng.normal(size=(len(chosen), d)) if d > 1 else np.ones((len(chosen), 1)), rng.normal(size=len(chosen))
    touched = np.zeros(n, dtype=bool)
    touched[chosen] = True
    for level in range(int(depth.max()), 0, -1):
        above = parent[np.flatnonzero(touched & (depth == level))]
        touched[above] = True
    nodes = np.flatnonzero(touched)
    slot = np.full(n, -1)
    slot[nodes] = np.arange(len(nodes))
    M, eta = np.zeros((len(nodes), d, d)), np.zeros((len(nodes), d))
    np.add.at(M, slot[chosen], x[:, :, None] * x[:, None, :])
    np.add.at(eta, slot[chosen], x * y[:, None])
    gain, offset, root = np.zeros_like(M), np.zeros_like(eta), np.zeros_like(M)
    for level in range(int(depth.max()), -1, -1):
        at = slot[np.flatnonzero(touched & (depth == level))]
        if not len(at):
            continue
        L = roots[level]
        B = np.eye(d) + L.T @ M[at] @ L
        half = np.linalg.inv(np.linalg.cholesky(B))
        F = L @ half.transpose(0, 2, 1)
        S = F @ F.transpose(0, 2, 1)
        gain[at], root[at] = np.eye(d) - S @ M[at], F
        offset[at] = np.einsum("nij,nj->ni", S, eta[at])
        if level:
            above = slot[parent[nodes[at]]]
            sent = M[at] @ gain[at]
            np.add.at(M, above, 0.5 * (sent + sent.transpose(0, 2, 1)))
            np.add.at(eta, above, eta[at] - np.einsum("nij,nj->ni", M[at], offset[at]))
    starts = np.concatenate([np.flatnonzero(np.diff(depth, prepend=-1)), [n]]).astype(np.int32)
    return Frozen(
        parent, child_start, starts, depth, roots, ~roots.any(axis=(1, 2)), np.zeros(d), np.ones(d),
        nodes.astype(np.int32), gain, offset, root, np.zeros(0, dtype=np.int32), d == 1,
    )  # fmt: skip


def full_sampler(frozen, x, n, rng):
    """(n,) the node and the score of the best action, by drawing every node; ties in random order."""
    d, slot = frozen.dim, np.full(len(frozen.parent), -1)
    slot[frozen.touched] = np.arange(len(frozen.touched))
    values = np.zeros((len(slot), n, d))
    for start, end in pairwise(frozen.level_start.tolist()):
        for node in range(start, end):
            above = values[frozen.parent[node]] if node else np.zeros((n, d))
            noise = rng.normal(size=(n, d))
            if slot[node] >= 0:
                s = slot[node]
                values[node] = above @ frozen.gain[s].T + frozen.offset[s] + noise @ frozen.root[s].T
            else:
                values[node] = above + noise @ frozen.factor[frozen.class_of_node[node]].T
    scores = values[frozen.leaves] @ x
    ties = scores > scores.max(axis=0) - 1e-9
    best = np.argmax(np.where(ties, rng.random(scores.shape), -1.0), axis=0)
    return frozen.leaves[best], scores.max(axis=0)


# -- laws ------------------------------------------------------------------------------------------


def roots_of(sizes, d, rng=None):
    """Roots of covariances by depth; with a generator they are not in proportion."""
    made = [np.sqrt(size) * np.eye(d) for size in sizes]
    if rng is not None and d > 1:
        made = [root @ np.linalg.cholesky(np.eye(d) + 0.1 * np.ones((d, d)) * i) for i, root in enumerate(made)]
    return np.array(made)


def check_laws(kind, n):
    """The chosen action by chi-squared and its score by Kolmogorov-Smirnov, against drawing every node."""
    rng, worst = np.random.default_rng(0), []
    for d in (1, 2, 10):
        for name, parent, sizes, rows, mixed in (
            ("uneven, some touched", UNEVEN, [1.0, 0.5, 2.0, 0.3, 1.0], 5, True),
            ("uneven, most touched", UNEVEN, [1.0, 0.5, 2.0, 0.3, 1.0], 60, True),
            ("regular, nothing touched", balanced(3, 3), [1.0, 0.5, 2.0, 1.0], 0, False),
            ("regular, some touched", balanced(3, 3), [1.0, 0.5, 2.0, 1.0], 5, False),
            ("zero variances", UNEVEN, [1.0, 0.0, 2.0, 0.0, 0.0], 5, False),
        ):
            frozen = posterior(parent, roots_of(sizes, d, rng if mixed else None), rows, rng)
            x = np.ones(1) if d == 1 else rng.normal(size=d)
            expected = full_sampler(frozen, x, n, rng)
            given = n if d == 1 else np.tile(x, (n, 1))
            chosen = Scorer._of_frozen(frozen, kind)._chosen(given, 1, SEED, None, None)
            table = np.array([np.bincount(each, minlength=len(parent)) for each in (chosen.nodes[:, 0], expected[0])])
            table = table[:, table.sum(axis=0) > 20]
            p = chi2_contingency(table).pvalue if table.shape[1] > 1 else 1.0
            q = ks_2samp(chosen.scores[:, 0], expected[1]).pvalue
            worst.append(min(p, q))
            say(f"  d = {d:2d}  {name:26s} chi-squared p = {p:7.4f}   KS p = {q:7.4f}")
    good = min(worst) > FALSE_ALARM
    say(f"  {'all hold' if good else 'A LAW DOES NOT HOLD'} at a false-alarm rate of {FALSE_ALARM:g}, {n:,} draws")
    return good


def plans_of(kind):
    """The plans to compare: how touched actions are scored, and how nodes inside the tree are drawn."""
    kernel = "kernel" if kind == "gpu" else "interpreted"
    return ("apart", "apart"), (kernel, kernel)


def check_digits(kind, n):
    """How far 32 bits are from 64, with the same random words."""
    for d in (1, 10):
        for orders in (0, 3, 6):
            rng = np.random.default_rng(3)
            sizes = [1.0, 1.0, 1.0, 10.0**-orders]
            frozen = posterior(balanced(8, 3), roots_of(sizes, d), 2_000, rng)
            given = n if d == 1 else rng.normal(size=(n, d))
            double = Scorer._of_frozen(frozen, kind, precision="double")._chosen(given, 1, SEED, None, None)
            say(f"  d = {d:2d}, variances {orders} orders apart ({frozen.spread():.0e}), in deviations of scores:")
            for plans in plans_of(kind):
                scorer = Scorer._of_frozen(frozen, kind, precision="single")
                usual, scorer._plans = scorer._plans, plans
                single = scorer._chosen(given, 1, SEED, None, None)
                same = single.nodes == double.nodes
                error = np.abs(single.scores - double.scores)[same] / double.scores.std()
                say(
                    f"    {plans[0]:11s} differ by at most {error.max():.1e} and {np.median(error):.1e} in the median; "
                    f"the same action in {same.mean():.6f}{' [usual]' if plans == usual else ''}"
                )


def check_chunks(kind, n):
    frozen = posterior(UNEVEN, roots_of([1.0, 0.5, 2.0, 0.3, 1.0], 3), 9, np.random.default_rng(1))
    contexts, found = np.random.default_rng(2).normal(size=(n, 3)), []
    for chunk in (None, 1, n // 3, n):
        chosen = Scorer._of_frozen(frozen, kind)._chosen(contexts, 3, SEED, chunk, None)
        found.append((chosen.nodes, chosen.scores))
    same = all((found[0][0] == other[0]).all() and (found[0][1] == other[1]).all() for other in found[1:])
    say(f"  chunks of {found[0][0].shape[0]:,}, 1, {n // 3:,} and {n:,}: {'identical' if same else 'DIFFERENT'}")
    return same


# -- speed -----------------------------------------------------------------------------------------


def timed(run, repeats=3):
    """The fastest of some runs, after one that compiles; what a run returns is waited for."""
    jax.block_until_ready(run())
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        spent.append(time.perf_counter() - start)
    return min(spent)


def figure(what, spent, target, more=""):
    """A time beside its target, which is for the full size on a GPU."""
    beside = f"   (target {target:g} s: {'met' if spent <= target else 'MISSED'})" if "--quick" not in sys.argv else ""
    say(f"  {what}: {spent:.3f} s{beside} {more}".rstrip())


def decided(scorer, contexts, k=1):
    chosen = scorer._chosen(contexts, k, SEED, None, None)
    return chosen.nodes, chosen.scores


def contextual(kind, device, n, height):
    """All touched: whole, with each plan and each shape of a kernel, and where the time goes."""
    rng = np.random.default_rng(0)
    leaves = 10**height
    frozen = posterior(balanced(10, height), roots_of([1.0] * (height + 1), 10), 0, rng, np.arange(leaves))
    on_device = jax.device_put(rng.normal(size=(n, 10)).astype(np.float32), device)
    what = f"{n:,} contexts, K = {leaves:,}, d = 10, all touched"
    for plans in (*plans_of(kind), ("products", "products")):
        scorer = Scorer._of_frozen(frozen, kind)
        usual, scorer._plans = scorer._plans, plans
        attempt(
            f"{what}, {plans[0]}",
            lambda name, scorer=scorer, more="[the usual plan]" if plans == usual else "": figure(
                name, timed(lambda: decided(scorer, on_device)), 0.5, more
            ),
        )
    scorer = Scorer._of_frozen(frozen, kind)
    attempt(f"{what}, k = 5", lambda name: say(f"  {name}: {timed(lambda: decided(scorer, on_device, 5), 1):.3f} s"))
    attempt("shares", lambda _: shares(scorer, n, device))
    if kind == "gpu":
        attempt("shapes", lambda _: shapes(scorer, n, device))
    attempt("limits", lambda _: limits(n, leaves, device))
    return frozen


def attempt(name, run):
    """Run something that may fail without taking the rest with it."""
    try:
        run(name)
    except Exception as problem:
        say(f"  {name}: FAILED, {type(problem).__name__}: {str(problem)[:300]}")


class Block:
    """One block of decisions, on the device, whose stages can be run one by one."""

    def __init__(self, scorer, n, device, size=None):
        _, self.placed = scorer._layout(np.ones(len(scorer._frozen.leaves), dtype=np.int64), 1)
        self.size = size or scorer._block_size(self.placed, n)
        x = np.random.default_rng(1).normal(size=(scorer._frozen.dim, self.size)).astype(np.float32)
        self.x = jax.device_put(x, device)
        self.counters = jax.device_put((np.uint32(0), (np.uint32(1), np.uint32(2))), device)
        self.best = stages.start(1, self.size, np.float32)
        self.blocks = -(-n // self.size)

    def nodes(self, plan):
        return stages.draw_nodes(self.x, *self.counters, *self.placed.nodes, plan=plan)

    def leaves(self, values, plan):
        more = {"tile": self.placed.tile, "ties": False, "plan": plan}
        return stages.best_of_leaves(self.x, *self.counters, self.best, values, *self.placed.leaves, **more)

    def walk(self, values):
        return stages.walk(self.x, *self.counters, values, *self.placed.walk)

    def groups(self, walked):
        return stages.best_of_groups(self.x, *self.counters, self.best, *walked, *self.placed.groups, ties=False)

    def all(self, run):
        """The time of all blocks, in seconds."""
        return timed(run, 5) * self.blocks


def shares(scorer, n, device):
    """One block, stage by stage and with parts of it left out, times the number of blocks."""
    block = Block(scorer, n, device)
    say(f"  one block is {block.size:,} contexts; of all {block.blocks} blocks, in seconds:")
    kernel = "kernel" if device.platform == "gpu" else "interpreted"
    for plan in ("apart", "products", kernel):
        say(f"    nodes inside the tree, {plan}: {block.all(lambda plan=plan: block.nodes(plan)):.3f}")
    values = block.nodes("apart")
    say(f"    touched actions, apart: {block.all(lambda: block.leaves(values, 'apart')):.3f}")
    whole = block.all(lambda: block.leaves(values, kernel))
    say(f"    touched actions, {kernel}: {whole:.3f}")
    with patched((counters, "normals", lambda _, a, b, dtype: counters.Drawn(*[(a + b).astype(dtype)] * 4))):
        without_normals = block.all(lambda: block.leaves(values, kernel))
    with patched((kernels, "_law", lambda ref, place, x, above: (above[0] + ref[(*place, 0)], x[1]))):
        without_moments = block.all(lambda: block.leaves(values, kernel))
    say(f"      of these normals, by leaving them out: {whole - without_normals:.3f}")
    say(f"      means and variances, likewise: {whole - without_moments:.3f}")
    say(f"      memory, reduction and the rest: {without_normals + without_moments - whole:.3f}")


@contextmanager
def patched(*changes):
    """Other attributes of modules for a while, with everything compiled again."""
    kept = [(module, name, getattr(module, name)) for module, name, _ in changes]
    for module, name, value in changes:
        setattr(module, name, value)
    jax.clear_caches()
    try:
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        jax.clear_caches()


def shapes(scorer, n, device):
    """The kernels with other numbers of decisions and warps to a program."""
    block = Block(scorer, n, device)
    values = block.nodes("apart")
    for shape in (
        (256, 4, 4096), (1024, 4, 4096), (256, 2, 4096), (128, 1, 8192), (512, 8, 4096), (512, 4, 16384),
    ):  # fmt: skip

        def one(name, shape=shape):
            names = ("DECISIONS", "WARPS", "PROGRAMS")
            with patched(*((kernels, name, value) for name, value in zip(names, shape, strict=True))):
                nodes = block.all(lambda: block.nodes("kernel"))
                leaves = block.all(lambda: block.leaves(values, "kernel"))
            say(f"  {name}: nodes {nodes:.3f} s, touched actions {leaves:.3f} s")

        attempt("kernels of {:,} decisions, {} warps, {:,} programs".format(*shape), one)


def _both(drawn):
    return jnp.maximum(drawn.first, drawn.second)


def limits(n, leaves, device):
    """What the device can do of each ingredient alone, for as many leaf scores."""
    total, rows = n * leaves, 16_384
    columns = 640
    steps = total / (rows * columns)
    some = max(1, min(round(steps), 200))
    first = jnp.arange(rows, dtype=jnp.uint32)
    key = (jnp.uint32(1), jnp.uint32(2))

    def normals(i, acc):
        second = (i.astype(jnp.uint32) * columns + jnp.arange(columns // 2, dtype=jnp.uint32))[:, None]
        return jnp.maximum(acc, _both(counters.normals(key, first, second, np.float32)).max(axis=0))

    loop = jax.jit(lambda: jax.lax.fori_loop(0, some, normals, jnp.zeros(rows)))
    say(f"  limits: {total:.0e} normals by Threefry and Box-Muller, in one kernel: {timed(loop) * steps / some:.3f} s")
    for impl in ("rbg", "threefry2x32"):
        draw = jax.jit(lambda key: jax.random.normal(key, (columns, rows)).max(axis=0))
        random_key = jax.random.key(0, impl=impl)
        say(f"  limits: the same by jax.random, {impl}: {timed(lambda k=random_key, f=draw: f(k)) * steps:.3f} s")
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(rows, 168)).astype(np.float32), rng.normal(size=(168, columns)).astype(np.float32)
    exact = left[:256].astype(float) @ right
    a, b = jnp.asarray(left), jnp.asarray(right)
    presets = ("F32_F32_F32", "TF32_TF32_F32_X3", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9")
    for precision in ("highest", *(presets if device.platform == "gpu" else ())):

        def multiplied(name, precision=precision):
            product = jax.jit(lambda a, b: jnp.matmul(a, b, precision=precision))
            spent, error = timed(lambda: product(a, b), 10), np.abs(np.asarray(product(a, b))[:256] - exact).max()
            say(f"  {name}: {spent * steps:.3f} s, wrong by at most {error / exact.std():.1e}")

        attempt(f"limits: matrix products of the same size, 168 numbers a score, {precision}", multiplied)
    block = jnp.ones((2**26 if device.platform == "gpu" else 2**22,))
    copy = jax.jit(lambda a: a + 1.0)
    rate = 8 * len(block) / timed(lambda: copy(block), 5)
    say(f"  limits: memory {rate / 1e12:.2f} TB/s; writing and reading each score once: {8 * total / rate:.3f} s")


def from_file(kind, frozen, n):
    host = np.random.default_rng(4).normal(size=(n, 10))
    scorer = Scorer._of_frozen(frozen, kind)
    say(f"  {n:,} contexts from the host's memory and back: {timed(lambda: decided(scorer, host), 2):.3f} s")
    try:
        pq, pa = streams.arrow(".parquet"), streams.arrow()
    except ModuleNotFoundError as problem:
        say(f"  from file to file: not run ({problem})")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "contexts.parquet", Path(folder) / "decisions.parquet"
        names = [f"x{j}" for j in range(10)]
        pq.write_table(pa.table({name: host[:, j] for j, name in enumerate(names)}), source)

        def run():
            row = 0
            with streams.DecisionFile(target, None, None, False) as out:
                for table in streams.parquet_tables(source, names, 2**18):
                    part = np.column_stack([table[name].to_numpy() for name in names])
                    chosen = scorer._chosen(part, 1, SEED, None, None, row)
                    out.write(np.arange(row, row + len(part)), chosen.nodes, chosen.scores)
                    row += len(part)
            return row

        figure("the same, from a Parquet file to a Parquet file", timed(run, 2), 3.0)


def untouched(kind, device, n, height, touched, d, target):
    rng = np.random.default_rng(5)
    frozen = posterior(balanced(10, height), roots_of([1.0] * (height + 1), d), touched, rng)
    contexts = n if d == 1 else rng.normal(size=(n, d))
    what = f"{n:,} {'decisions' if d == 1 else 'contexts'}, K = 10^{height}, d = {d}, {touched:,} touched"
    cases = {what: frozen}
    if d > 1:
        other = frozen._replace(factor=roots_of([1.0] * (height + 1), d, rng))
        cases[f"{what}, covariances not in proportion"] = other
    for name, case in cases.items():
        start = time.perf_counter()
        scorer = Scorer._of_frozen(case, kind)
        layout, placed = scorer._layout(np.ones(10**height, dtype=np.int64), 1)
        prepared = time.perf_counter() - start
        say(
            f"  vectors {len(layout.vectors.nodes):,}, numbers {len(layout.numbers.nodes):,}, groups "
            f"{len(layout.groups.parents):,}, touched actions {len(layout.leaves):,}; "
            f"{placed.bytes_per_decision:,} bytes a decision"
        )
        usual = scorer._block_size(placed, n)
        for size in (usual, usual // 2) if d > 1 else (usual,):
            attempt(f"stages, blocks of {size:,}", lambda name, s=scorer, size=size: by_stage(name, s, n, device, size))
        figure(
            name, timed(lambda scorer=scorer: decided(scorer, contexts), 1), target, f"[prepared in {prepared:.1f} s]"
        )


def by_stage(name, scorer, n, device, size):
    """The time of each stage, of all blocks, one block at a time."""
    block = Block(scorer, n, device, size)
    plan, node_plan = scorer._plans
    values = block.nodes(node_plan)
    walked = block.walk(values)
    times = {
        "nodes": lambda: block.nodes(node_plan), "walk": lambda: block.walk(values),
        "groups": lambda: block.groups(walked), "touched actions": lambda: block.leaves(values, plan),
    }  # fmt: skip
    if node_plan == "kernel":
        times["(nodes, apart"] = lambda: block.nodes("apart")
        times["touched actions, apart)"] = lambda: block.leaves(values, "apart")
    spent = ", ".join(f"{what} {timed(run, 2) * block.blocks:.3f} s" for what, run in times.items())
    say(f"  {name}: {spent}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, on JAX's CPU")
    parser.add_argument("--device", choices=("gpu", "cpu"), default=None)
    parser.add_argument("--only", nargs="+", default=[""], help="the sections whose titles have one of these words")
    given = parser.parse_args()
    kind = given.device or ("cpu" if given.quick else "gpu")
    device = jax.devices(kind)[0]
    begun = time.perf_counter()
    say(f"python {platform.python_version()}, jax {jax.__version__}, numpy {np.__version__}")
    say(f"{kind}: {device.device_kind}")
    if kind == "gpu":
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.sm", "--format=csv,noheader"]
        say(subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip())
    small = given.quick
    n, height = (500, 3) if small else (100_000, 6)
    kept = {}

    def speed():
        kept["frozen"] = contextual(kind, device, 512 if small else 1_000_000, 2 if small else 4)

    sections = {
        "laws, against drawing every node": lambda: check_laws(kind, 5_000 if small else 50_000),
        "32 bits against 64": lambda: check_digits(kind, 2_000 if small else 100_000),
        "chunks": lambda: check_chunks(kind, 1_000 if small else 100_000),
        "speed: contexts, all touched": speed,
        "speed: files": lambda: from_file(kind, kept["frozen"], 1_000 if small else 1_000_000),
        "speed: without contexts, much untouched": lambda: untouched(kind, device, n, height, n // 10, 1, 1.0),
        "speed: contexts, much untouched": lambda: untouched(kind, device, n, height, n // 10, 10, 10.0),
    }
    good = True
    for title, run in sections.items():  # one that fails leaves the others
        if not any(word in title for word in given.only):
            continue
        say(f"{title} [after {time.perf_counter() - begun:.0f} s]")
        try:
            good &= run() is not False
        except Exception:
            good = False
            say("  FAILED\n" + traceback.format_exc(limit=-4)[-1500:])
    say(f"compiled {stages.n_traces()} functions; {time.perf_counter() - begun:.0f} s in all")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
