"""The compiled kernels of the scalar engine; scalar.py says what the columns of state and law mean."""

from __future__ import annotations

import math

import numpy as np

from bough.arrays import Flags, Floats, Integers, Nodes
from bough.inference.jit import kernel

# Columns of the state of a slot, and of its law given the parent, which is all that sampling reads. Where rewards are
# counts, a leaf has their sum and exposure instead of a spread, and the cavity that its site was made in.
M, ETA, M_TOLD, ETA_TOLD, COUNT, SPREAD = range(6)
TOTAL, EXPOSURE, CAVITY, WIDTH = range(5, 9)
GAIN, OFFSET, DEVIATION = range(3)

# Distributions of a reward.
GAUSSIAN, BERNOULLI, POISSON = range(3)


def _quadrature(n: int) -> tuple[Floats, Floats]:
    """The points of Gauss-Hermite quadrature, and the logarithms of weight over density."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(n)
    return nodes, np.log(weights) - 0.5 * math.log(2.0 * math.pi) + 0.5 * nodes**2


_NODES, _LOG_WEIGHTS = _quadrature(32)
_FEW_NODES, _FEW_LOG_WEIGHTS = _quadrature(12)
_NARROW = 0.5  # a cavity's variance times trials up to which few points are enough: they are off by 1e-9 then
_STILL = 1e-9  # a cavity that moves by less than this, in its own standard deviations, leaves its site as it is
_ROUNDING = 1e-12  # of a cavity's mean: it comes from differences of messages
_FAR = 8.0  # standard deviations that a cavity reaches
_FAINT = 1e-7  # what counts add to a cavity, relative to its precision, below which the site is a Taylor expansion


@kernel
def collect(
    slots: Nodes,  # (n,)
    rewards: Floats,  # (n,)
    mean: float,
    precision: float,  # of one reward
    state: Floats,  # (T, 6)
) -> None:
    """Adds each reward to its leaf's row of state."""
    for i in range(len(slots)):
        slot = slots[i]
        reward = rewards[i] - mean
        if state[slot, COUNT] > 0.0:
            # Welford's sum of squares around the running mean, which is eta / M.
            off = reward - state[slot, ETA] / state[slot, M]
            state[slot, SPREAD] += off * off * state[slot, COUNT] / (state[slot, COUNT] + 1.0)
        state[slot, COUNT] += 1.0
        state[slot, M] += precision
        state[slot, ETA] += precision * reward


@kernel
def collect_sums(
    slots: Nodes,  # (n,)
    counts: Floats,  # (n,)
    averages: Floats,  # (n,) of the rewards, less the prior mean
    spreads: Floats,  # (n,) sums of squares around the averages
    precision: float,  # of one reward
    state: Floats,  # (T, 6)
) -> None:
    """Adds rewards that come summed to their leaves' rows of state."""
    for i in range(len(slots)):
        slot = slots[i]
        n = counts[i]
        state[slot, SPREAD] += spreads[i]
        if state[slot, COUNT] > 0.0:
            off = averages[i] - state[slot, ETA] / state[slot, M]
            state[slot, SPREAD] += off * off * n * state[slot, COUNT] / (state[slot, COUNT] + n)
        state[slot, COUNT] += n
        state[slot, M] += precision * n
        state[slot, ETA] += precision * n * averages[i]


@kernel
def mark_paths(
    slots: Nodes,  # (n,)
    parent: Nodes,  # (T,)
    law: Floats,  # (T, 3)
    stale: Nodes,  # (room,)
) -> int:
    """Overwrites stale with the slots on the paths to the root, each once; returns how many.

    A negative gain, which no law has, marks a slot that is listed already.
    """
    n_stale = 0
    for i in range(len(slots)):
        slot = slots[i]
        while slot >= 0 and not law[slot, GAIN] < 0.0:
            law[slot, GAIN] = -1.0
            stale[n_stale] = slot
            n_stale += 1
            slot = parent[slot]
    return n_stale


@kernel
def refresh_slot(slot: int, above: int, v: float, state: Floats, law: Floats) -> None:
    """Overwrites the law of a slot of prior variance v, and tells the state above (-1: none) what changed."""
    m = state[slot, M]
    eta = state[slot, ETA]
    gain = 1.0 / (1.0 + v * m)
    law[slot, GAIN] = gain
    law[slot, OFFSET] = v * gain * eta
    law[slot, DEVIATION] = math.sqrt(v * gain)
    if above >= 0:
        state[above, M] += m * gain - state[slot, M_TOLD]
        state[above, ETA] += eta * gain - state[slot, ETA_TOLD]
    state[slot, M_TOLD] = m * gain
    state[slot, ETA_TOLD] = eta * gain


@kernel
def refresh(
    rootward: Nodes,  # (n,) slots, descending
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites the laws of the given slots, and tells their parents' states what has changed."""
    for i in range(len(rootward)):
        slot = rootward[i]
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)


@kernel
def observe_one(
    slots: Nodes,  # (1,)
    rewards: Floats,  # (1,)
    mean: float,
    precision: float,  # of one reward
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 6)
    law: Floats,  # (T, 3)
) -> None:
    """Adds one reward to its leaf, and refreshes the path to the root."""
    collect(slots, rewards, mean, precision, state)
    slot = slots[0]
    while slot >= 0:
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)
        slot = parent[slot]


# -- sites: what a leaf says where its rewards are counts ------------------------------------------


@kernel
def slopes(family: int, total: float, exposure: float, score: float) -> tuple[float, float]:
    """The first and the second derivative of the log likelihood of counts, at a score."""
    if family == BERNOULLI:
        odds = math.exp(-abs(score))  # of the less likely outcome
        less = odds / (1.0 + odds)
        slope = total - exposure * less if score < 0.0 else exposure * less - (exposure - total)
        return slope, -exposure * less / (1.0 + odds)
    rate = exposure * math.exp(min(score, 700.0))
    return total - rate, -rate


@kernel
def log_likelihood(family: int, total: float, exposure: float, score: float) -> float:
    """The log likelihood of counts at a score, without what does not depend on it."""
    if family == BERNOULLI:
        return total * score - exposure * (max(score, 0.0) + math.log1p(math.exp(-abs(score))))
    return total * score - exposure * math.exp(min(score, 700.0))


@kernel
def slopes_of_all(
    family: int,
    totals: Floats,  # (n,)
    exposures: Floats,  # (n,)
    scores: Floats,  # (n,)
    first: Floats,  # (n,)
    second: Floats,  # (n,)
) -> None:
    """Overwrites first and second with the derivatives of the log likelihood of each count."""
    for i in range(len(totals)):
        first[i], second[i] = slopes(family, totals[i], exposures[i], scores[i])


@kernel
def log_likelihood_of_all(family: int, totals: Floats, exposures: Floats, scores: Floats) -> float:
    """The log likelihood of counts (n,) at their scores."""
    total = 0.0
    for i in range(len(totals)):
        total += log_likelihood(family, totals[i], exposures[i], scores[i])
    return total


@kernel
def _lambert(x: float) -> float:
    """The w with w + log(w) = x."""
    if x < -30.0:
        return math.exp(x)
    w = x - math.log(x) if x > 1.0 else math.exp(x) / (1.0 + math.exp(x))
    for _ in range(6):
        w *= (1.0 + x - math.log(w)) / (1.0 + w)
    return w


@kernel
def _mode(family: int, total: float, exposure: float, mean: float, v: float) -> float:
    """Where the likelihood times the normal density of this mean and variance is highest: Newton in a bracket.

    Clicks: between the mean and where the likelihood alone is highest, and no further than the slope at the mean can
    pull. Counts: Lambert's function has the answer, but for rounding.
    """
    low, high, score = -math.inf, math.inf, mean
    if family == BERNOULLI:
        pull, _ = slopes(family, total, exposure, mean)
        peak = math.log(total) if total > 0.0 else -math.inf
        peak -= math.log(exposure - total) if exposure > total else -math.inf
        low = max(mean + v * pull, peak) if pull < 0.0 else mean
        high = min(mean + v * pull, peak) if pull > 0.0 else mean
    else:
        score = mean + v * total
        score -= _lambert(math.log(v * exposure) + score)
    before = math.inf
    for _ in range(100):
        slope, curve = slopes(family, total, exposure, score)
        slope -= (score - mean) / v
        curve -= 1.0 / v
        if slope > 0.0:
            low = score
        else:
            high = score
        step = -slope / curve
        sound = low < score + step < high and abs(step) < 0.5 * before  # or Newton would go back and forth
        if not sound and low > -math.inf and high < math.inf:
            step = 0.5 * (low + high) - score
        score += step
        before = abs(step)
        if before * math.sqrt(-curve) < 1e-6:  # so that the quadrature is a smooth function of its arguments
            break
    return score


@kernel
def tilted(family: int, total: float, exposure: float, mean: float, v: float) -> tuple[float, float, float]:
    """The log of the integral, the mean and the variance of the likelihood of counts times a normal density.

    Gauss-Hermite quadrature around the mode, in units of the curvature there.
    """
    centre = _mode(family, total, exposure, mean, v)
    _, curve = slopes(family, total, exposure, centre)
    scale = 1.0 / math.sqrt(1.0 / v - curve)
    top = log_likelihood(family, total, exposure, centre) - 0.5 * (centre - mean) ** 2 / v
    nodes, log_weights = _NODES, _LOG_WEIGHTS
    if family == BERNOULLI and v * exposure <= _NARROW:
        nodes, log_weights = _FEW_NODES, _FEW_LOG_WEIGHTS
    z, first, second = 0.0, 0.0, 0.0
    for k in range(len(nodes)):
        score = centre + scale * nodes[k]
        height = log_likelihood(family, total, exposure, score) - 0.5 * (score - mean) ** 2 / v
        weight = math.exp(height - top + log_weights[k])
        z += weight
        first += weight * nodes[k]
        second += weight * nodes[k] ** 2
    first /= z
    variance = scale * scale * (second / z - first * first)
    return top + math.log(z * scale) - 0.5 * math.log(v), centre + scale * first, variance


@kernel
def site(
    family: int, total: float, exposure: float, mean: float, offset: float, v: float
) -> tuple[float, float, float]:
    """The precision and the information of the Gaussian that changes a cavity's moments as counts do.

    The cavity's mean is mean + offset; the information is about the deviation from the mean. Also returns how probable
    the counts are in the cavity, as a logarithm.
    """
    score = mean + offset
    slope, curve = slopes(family, total, exposure, score)
    reach = _FAR * math.sqrt(v)  # the likelihood has to be faint wherever the cavity is
    nearest = score + reach if family == POISSON else max(abs(score) - reach, 0.0)
    _, steepest = slopes(family, total, exposure, nearest)
    if -steepest * v < _FAINT and abs(slope) * math.sqrt(v) < 1e-3:
        probability = log_likelihood(family, total, exposure, score) + 0.5 * v * (curve + slope * slope)
        return -curve, slope - curve * offset, probability
    probability, centre, variance = tilted(family, total, exposure, score, v)
    if not variance < v:  # by rounding: the likelihood is log-concave
        variance = v
    return 1.0 / variance - 1.0 / v, (centre - mean) / variance - offset / v, probability


@kernel
def sites_of_all(
    family: int,
    totals: Floats,  # (n,)
    exposures: Floats,  # (n,)
    means: Floats,  # (n,) the prior's
    offsets: Floats,  # (n,) of the cavities' means from those
    variances: Floats,  # (n,) of the cavities
    precision: Floats,  # (n,)
    information: Floats,  # (n,)
    probability: Floats,  # (n,)
) -> None:
    """Overwrites the last three with the site of each count, about the score's deviation from the prior mean."""
    for i in range(len(totals)):
        precision[i], information[i], probability[i] = site(
            family, totals[i], exposures[i], means[i], offsets[i], variances[i]
        )


@kernel
def cavity(slot: int, parent: Nodes, slot_class: Nodes, variance: Floats, state: Floats) -> tuple[float, float]:
    """The mean, as a deviation from the prior's, and the variance of a leaf given what all others have said.

    Rootward: the leaf is a (what is above) + offset + noise, and each ancestor, given what has been said below it but
    not by the leaf, is again such a line in its own parent.
    """
    v = variance[slot_class[slot]]
    a, offset = 1.0, 0.0
    m, eta = 0.0, 0.0  # what the child on the path would have told without the leaf
    m_told, eta_told = state[slot, M_TOLD], state[slot, ETA_TOLD]
    slot = parent[slot]
    while slot >= 0:
        own = variance[slot_class[slot]]
        m += max(state[slot, M] - m_told, 0.0)
        eta += state[slot, ETA] - eta_told
        gain = 1.0 / (1.0 + own * m)
        offset += a * own * gain * eta
        v += a * a * own * gain
        a *= gain
        m *= gain
        eta *= gain
        m_told, eta_told = state[slot, M_TOLD], state[slot, ETA_TOLD]
        slot = parent[slot]
    return offset, v


@kernel
def refresh_site(
    slot: int,
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 9)
    law: Floats,  # (T, 3)
    offset: float,  # of the cavity
    v: float,
    size: float,  # of the step to the new site: 1 is all of it
) -> None:
    """Overwrites a leaf's site, and refreshes the path to the root."""
    m, eta, _ = site(family, state[slot, TOTAL], state[slot, EXPOSURE], mean, offset, v)
    m_off, eta_off = m - state[slot, M], eta - state[slot, ETA]
    state[slot, M] += size * m_off
    state[slot, ETA] += size * eta_off
    state[slot, CAVITY] = offset
    state[slot, WIDTH] = v
    if size < 1.0 and (abs(m_off) * v > _STILL or abs(eta_off - m_off * offset) * math.sqrt(v) > _STILL):
        state[slot, WIDTH] = -1.0  # not there yet, even if the cavity stays
    while slot >= 0:
        refresh_slot(slot, parent[slot], variance[slot_class[slot]], state, law)
        slot = parent[slot]


@kernel
def observe_counts(
    slots: Nodes,  # (n,)
    totals: Floats,  # (n,)
    exposures: Floats,  # (n,)
    counts: Floats,  # (n,)
    state: Floats,  # (T, 9)
) -> None:
    """Adds counts to their leaves' rows of state, whose sites are stale then."""
    for i in range(len(slots)):
        state[slots[i], TOTAL] += totals[i]
        state[slots[i], EXPOSURE] += exposures[i]
        state[slots[i], COUNT] += counts[i]
        state[slots[i], WIDTH] = -1.0


@kernel
def sweep(
    slots: Nodes,  # (n,) of leaves
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 9)
    law: Floats,  # (T, 3)
    size: float,  # of the steps to the new sites
) -> int:
    """Makes the sites of leaves again whose cavities have moved, one after the other; returns how many."""
    moved = 0
    for i in range(len(slots)):
        slot = slots[i]
        offset, v = cavity(slot, parent, slot_class, variance, state)
        width = state[slot, WIDTH]
        still = _STILL * math.sqrt(v) + _ROUNDING * abs(offset)
        if abs(offset - state[slot, CAVITY]) <= still and abs(v - width) <= _STILL * v:
            continue
        refresh_site(slot, family, mean, parent, slot_class, variance, state, law, offset, v, size)
        moved += 1
    return moved


@kernel
def site_surplus(
    slots: Nodes,  # (n,) of leaves
    family: int,
    mean: float,
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    state: Floats,  # (T, 9)
) -> float:
    """The sum over leaves of how much more probable, as a logarithm, the counts are than their sites, in the cavity."""
    total = 0.0
    for i in range(len(slots)):
        slot = slots[i]
        offset, v = cavity(slot, parent, slot_class, variance, state)
        m, eta = state[slot, M], state[slot, ETA]
        _, _, surplus = site(family, state[slot, TOTAL], state[slot, EXPOSURE], mean, offset, v)
        gain = 1.0 / (1.0 + v * m)
        surplus -= gain * (eta * offset - 0.5 * m * offset * offset + 0.5 * v * eta * eta) - 0.5 * math.log1p(v * m)
        total += surplus
    return total


@kernel
def log_mass(slot_class: Nodes, variance: Floats, state: Floats) -> float:
    """The log of the prior's integral over all sites, exp(eta t - M t^2 / 2) at each leaf."""
    total = 0.0
    for slot in range(len(state)):
        v = variance[slot_class[slot]]
        m, eta = state[slot, M], state[slot, ETA]
        total += 0.5 * (v * eta * eta / (1.0 + v * m) - math.log1p(v * m))
    return total


# -- samples and moments ---------------------------------------------------------------------------


@kernel
def sample_all(
    out: Floats,  # (V,) standard normals on entry, parameters on return
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out. Untouched stretches follow the prior; between them stand the touched nodes."""
    start = 0
    if len(nodes) == 0:
        out[0] = mean + deviation[class_of_node[0]] * out[0]
        start = 1
    for k in range(len(nodes)):
        slot = slots[k]
        node = nodes[k]
        for i in range(start, node):
            out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]
        above = out[tree_parent[node]] - mean if node > 0 else 0.0
        out[node] = mean + law[slot, GAIN] * above + law[slot, OFFSET] + law[slot, DEVIATION] * out[node]
        start = node + 1
    for i in range(start, len(out)):
        out[i] = out[tree_parent[i]] + deviation[class_of_node[i]] * out[i]


@kernel
def sample_some(
    out: Floats,  # (n,) standard normals on entry, parameters on return
    parent_position: Nodes,  # (n,) -1 for the root
    classes: Nodes,  # (n,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    slots: Nodes,  # (n,) -1 where untouched
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out, parents before children."""
    for i in range(len(out)):
        above = out[parent_position[i]] - mean if parent_position[i] >= 0 else 0.0
        slot = slots[i]
        if slot >= 0:
            out[i] = mean + law[slot, GAIN] * above + law[slot, OFFSET] + law[slot, DEVIATION] * out[i]
        else:
            out[i] = mean + above + deviation[classes[i]] * out[i]


@kernel
def sample_touched(
    out: Floats,  # (T,) standard normals on entry, parameters on return
    parent: Nodes,  # (T,)
    mean: float,
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out with a joint draw of the touched nodes, parents before children."""
    for slot in range(len(out)):
        above = out[parent[slot]] - mean if slot > 0 else 0.0
        step = law[slot, OFFSET] + law[slot, DEVIATION] * out[slot]
        out[slot] = mean + law[slot, GAIN] * above + step


@kernel
def variances(
    out: Floats,  # (V,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    nodes: Nodes,  # (T,) the touched ones, ascending
    slots: Nodes,  # (T,) theirs
    law: Floats,  # (T, 3)
) -> None:
    """Overwrites out: S + A var(parent) A, leafward."""
    touched = 0
    for i in range(len(out)):
        above = out[tree_parent[i]] if i > 0 else 0.0
        if touched < len(nodes) and nodes[touched] == i:
            slot = slots[touched]
            out[i] = law[slot, DEVIATION] ** 2 + law[slot, GAIN] ** 2 * above
            touched += 1
        else:
            out[i] = above + variance[class_of_node[i]]


@kernel
def deviance(
    parent: Nodes,  # (T,)
    slot_class: Nodes,  # (T,)
    variance: Floats,  # (n_classes,)
    noise: float,
    state: Floats,  # (T, 6)
) -> float:
    """Minus twice the log evidence, without its constant: a sum of terms that are none of them negative.

    A node's message says eta~ / M~ with precision M~; how far that is from the mean of what its siblings and it
    said together is what their parent finds surprising. The same at the leaves is the spread of the rewards.
    """
    total = 0.0
    for slot in range(len(state)):
        m = state[slot, M]
        above = parent[slot]
        expected = state[above, ETA] / state[above, M] if above >= 0 else 0.0
        total += state[slot, M_TOLD] * (state[slot, ETA] / m - expected) ** 2
        total += math.log1p(variance[slot_class[slot]] * m)
        total += state[slot, SPREAD] / noise
    return total


@kernel
def _choose(score: Floats, rng: np.random.Generator) -> int:
    """The largest score's place, ties broken as `choosing.largest` breaks them; vector_kernels.py has its twin."""
    best = 0
    ties = 1
    for k in range(1, len(score)):
        if score[k] > score[best]:
            best = k
            ties = 1
        elif score[k] == score[best]:
            ties += 1
    if ties > 1:
        wanted = int(rng.random() * ties)
        for k in range(best, len(score)):
            if score[k] == score[best]:
                if wanted == 0:
                    return k
                wanted -= 1
    return best


@kernel
def _leader(
    quantile: float,
    touched: Nodes,  # (n,) the touched nodes, parents before children
    free: Nodes,  # (V,) the children of each node that are not touched
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,) the depth of each node
    first_leaf: int,
    variance: Floats,  # (n_classes,)
    mean: float,
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
) -> int:
    """The place of the action with the highest mean, or quantile, if it is a touched one and alone; -1 otherwise.

    Overwrites value and spread of the touched nodes. What is untouched below a touched node has its mean, and its
    variance with those of the levels below added, so that nobody else has to be looked at. All leaves are equally deep.
    """
    lowest = class_of_node[first_leaf]
    best, rival, leader = -math.inf, -math.inf, -1
    for k in range(len(touched)):
        i = touched[k]
        above = value[tree_parent[i]] if i > 0 else mean
        value[i] = mean + law[i, GAIN] * (above - mean) + law[i, OFFSET] + 0.0
        score = value[i]
        if quantile != 0.0:
            wide = spread[tree_parent[i]] if i > 0 else 0.0
            wide = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * wide
            spread[i] = wide
            for depth in range(class_of_node[i] + 1, lowest + 1):
                wide = wide + variance[depth]
            score += quantile * math.sqrt(wide)
        if i < first_leaf and free[i] == 0:
            continue
        if score > best:
            best, rival, leader = score, best, (i - first_leaf if i >= first_leaf else -1)
        elif score > rival:
            rival = score
    return leader if best > rival else -1


@kernel
def _best_of_all(
    sampled: bool,
    quantile: float,
    rng: np.random.Generator,
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    touched: Flags,  # (V,)
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
) -> int:
    """The place of the best action of all, by a draw, the means or a quantile; overwrites value to score, moves rng."""
    for i in range(len(value)):
        above = value[tree_parent[i]] if i > 0 else mean
        if touched[i]:
            step = law[i, DEVIATION] * rng.standard_normal() if sampled else 0.0
            value[i] = mean + law[i, GAIN] * (above - mean) + law[i, OFFSET] + step
        else:
            step = deviation[class_of_node[i]] * rng.standard_normal() if sampled else 0.0
            value[i] = above + step
    if quantile != 0.0:
        for i in range(len(value)):
            above = spread[tree_parent[i]] if i > 0 else 0.0
            if touched[i]:
                spread[i] = law[i, DEVIATION] ** 2 + law[i, GAIN] ** 2 * above
            else:
                spread[i] = above + variance[class_of_node[i]]
    variance_before = -1.0
    width = 0.0
    for k in range(len(leaves)):
        score[k] = value[leaves[k]]
        if quantile != 0.0:
            if spread[leaves[k]] != variance_before:  # siblings that nobody has tried have the same
                variance_before = spread[leaves[k]]
                width = quantile * math.sqrt(variance_before)
            score[k] += width
    return _choose(score, rng)


@kernel
def drawn_reward(family: int, mean: float, noise: float) -> float:
    """The reward that this noise gives around this mean: their sum, or a quantile of a distribution of counts."""
    if family == GAUSSIAN:
        return mean + noise
    if family == BERNOULLI:
        return 1.0 if noise < mean else 0.0
    if mean == 0.0 or noise == 0.0:
        return 0.0
    # What lies at or below the mode, summed downward until it is nothing; from there step by step.
    k = float(math.floor(mean))
    mass = math.exp(k * math.log(mean) - mean - math.lgamma(k + 1.0))
    below, term, j = 0.0, mass, k
    while term > 1e-20:
        below += term
        term *= j / mean
        j -= 1.0
    while k > 0.0 and below - mass >= noise:
        below -= mass
        mass *= k / mean
        k -= 1.0
    while below < noise and mass > 0.0:
        k += 1.0
        mass *= mean / k
        below += mass
    return k


@kernel
def play(
    family: int,
    sampled: bool,  # draw parameters each round; otherwise take their means
    even: bool,  # all leaves are equally deep, and classes are depths
    quantiles: Floats,  # (rounds,) standard deviations added to the means
    rng: np.random.Generator,
    truth: Floats,  # (K,) each action's mean reward
    best: float,  # what regret is measured against
    noise: Floats,  # (rounds,) added to the mean reward, unless there are residuals
    residuals: Floats,  # (n,) each action's own noise, or empty
    residual_start: Integers,  # (K + 1,)
    pick: Floats,  # (rounds,) uniform
    leaves: Nodes,  # (K,)
    tree_parent: Nodes,  # (V,)
    class_of_node: Nodes,  # (V,)
    variance: Floats,  # (n_classes,)
    deviation: Floats,  # (n_classes,)
    mean: float,
    precision: float,  # of one reward
    state: Floats,  # (V, 6) zeros on entry
    law: Floats,  # (V, 3)
    value: Floats,  # (V,)
    spread: Floats,  # (V,)
    score: Floats,  # (K,)
    gap: Floats,  # (rounds,)
) -> None:
    """Overwrites gap with the regret of each round, and everything from state on; moves rng on.

    A whole run of a policy. Every node has a slot, its own number. The same numbers, drawn in the same order, as
    the policy's own decide and update give.
    """
    touched = np.zeros(len(law), dtype=np.bool_)  # a byte a node to look at, where state and law have nine numbers
    order = np.empty(len(law), dtype=np.int32)
    n_touched = 0
    free = np.zeros(len(law), dtype=np.int32)
    for i in range(1, len(law)):
        free[tree_parent[i]] += 1
    for t in range(len(gap)):
        action = -1
        if even and not sampled:
            action = _leader(
                quantiles[t], order[:n_touched], free, tree_parent, class_of_node, leaves[0], variance, mean, law,
                value, spread,
            )  # fmt: skip
        if action < 0:
            action = _best_of_all(
                sampled, quantiles[t], rng, leaves, tree_parent, class_of_node, variance, deviation, mean, touched, law,
                value, spread, score,
            )  # fmt: skip
        gap[t] = best - truth[action]
        off = noise[t]
        if len(residuals) > 0:
            start = residual_start[action]
            off = residuals[start + int(pick[t] * (residual_start[action + 1] - start))]
        slot = leaves[action]
        reward = drawn_reward(family, truth[action], off)
        if family == GAUSSIAN:
            state[slot, M] += precision
            state[slot, ETA] += precision * (reward - mean)
        else:
            state[slot, TOTAL] += reward
            state[slot, EXPOSURE] += 1.0
            offset, v = cavity(slot, tree_parent, class_of_node, variance, state)
            site_of = site(family, state[slot, TOTAL], state[slot, EXPOSURE], mean, offset, v)
            state[slot, M], state[slot, ETA] = site_of[0], site_of[1]
        before = n_touched
        while slot >= 0:
            if not touched[slot]:
                touched[slot] = True
                order[n_touched] = slot
                n_touched += 1
                if tree_parent[slot] >= 0:
                    free[tree_parent[slot]] -= 1
            refresh_slot(slot, tree_parent[slot], variance[class_of_node[slot]], state, law)
            slot = tree_parent[slot]
        order[before:n_touched] = order[before:n_touched][::-1].copy()
