"""Independent references for the losses: plain loops in 60-digit arithmetic.

Written from PROTOCOL.md, the papers and what their authors published, never from the code under
test. `f` is one row of k logits, `excluded` the k flags of its ruled-out classes; `F` and `E` are
lists of such rows.
Inputs are Python numbers, taken at their exact binary values; results are mpf or lists of mpf.

A difference such as 1 - p is computed as the sum over the other classes, so that small results
keep all their digits, at logits of +-1e4 too. What is left is the cancellation inside a signed
sum (`unbiased`, `pc`, sums of parts): an absolute error of about 1e-59 times the largest term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import combinations
from typing import Any

Number = Any  # an mpf of `mp` below
Row = Sequence[float]
Flags = Sequence[bool]
Weight = Sequence[float] | None

# A context of our own: the global precision stays as it is. Loaded by name because mpmath has no
# types: mypy then needs neither stubs nor an ignore.
mp: Any = import_module("mpmath").MPContext()
mp.dps = 60


# Sums over some classes


def _candidates(excluded: Flags) -> list[bool]:
    """The classes that are not ruled out."""
    return [not flag for flag in excluded]


def _total(values: Sequence[Number], chosen: Flags) -> Number:
    """The sum of the chosen values."""
    return mp.fsum([values[j] for j in range(len(values)) if chosen[j]])


def _shares(values: Sequence[Number], chosen: Flags) -> list[Number]:
    """Each chosen value divided by their sum; 0 for the others."""
    total = _total(values, chosen)
    return [values[j] / total if chosen[j] else mp.mpf(0) for j in range(len(values))]


def _largest(values: Sequence[Number]) -> int:
    """The first index of the largest value."""
    best = 0
    for j in range(len(values)):
        if values[j] > values[best]:
            best = j
    return best


# Softmax and ordinary losses


def softmax(f: Row) -> list[Number]:
    """p_j = exp(f_j) / sum_i exp(f_i)."""
    total = mp.fsum([mp.exp(v) for v in f])
    return [mp.exp(v) / total for v in f]


def log_softmax(f: Row) -> list[Number]:
    """Log p_j = -log(1 + sum_{i != j} exp(f_i - f_j)), exact near p_j = 1 as well."""
    result = []
    for j in range(len(f)):
        odds = [mp.exp(mp.mpf(f[i]) - f[j]) for i in range(len(f)) if i != j]
        result.append(-mp.log1p(mp.fsum(odds)))
    return result


def _others(values: Sequence[Number], j: int) -> Number:
    """The sum of all values but the j-th: 1 - p_j when the values are a softmax."""
    return mp.fsum([values[i] for i in range(len(values)) if i != j])


def _cce(f: Row) -> list[Number]:
    """Categorical cross entropy, -log p_y."""
    return [-v for v in log_softmax(f)]


def _mae(f: Row) -> list[Number]:
    """Mean absolute error, 2 - 2 p_y."""
    p = softmax(f)
    return [2 * _others(p, y) for y in range(len(f))]


def _mse(f: Row) -> list[Number]:
    """Mean square error, 1 - 2 p_y + sum_j p_j^2 = (1 - p_y)^2 + sum_{j != y} p_j^2."""
    p = softmax(f)
    squares = [v * v for v in p]
    return [_others(p, y) ** 2 + _others(squares, y) for y in range(len(f))]


def _gce(f: Row, q: float = 0.7) -> list[Number]:
    """Generalized cross entropy, (1 - p_y^q) / q."""
    return [-mp.expm1(mp.mpf(q) * v) / mp.mpf(q) for v in log_softmax(f)]


def _phuber(f: Row, tau: float = 10) -> list[Number]:
    """Partially Huberised cross entropy: -log p_y if p_y >= 1/tau, else -tau p_y + log tau + 1."""
    result = []
    for p, log_p in zip(softmax(f), log_softmax(f), strict=True):
        if p * tau >= 1:
            result.append(-log_p)
        else:
            result.append(-tau * p + mp.log(tau) + 1)
    return result


def _zero_one(f: Row) -> list[Number]:
    """0-1 loss: 0 for the predicted class (the first largest logit), 1 for every other."""
    predicted = 0
    for j in range(len(f)):
        if f[j] > f[predicted]:
            predicted = j
    return [mp.mpf(0 if y == predicted else 1) for y in range(len(f))]


_BASES: dict[str, Callable[..., list[Number]]] = {
    "cce": _cce,
    "mae": _mae,
    "mse": _mse,
    "gce": _gce,
    "phuber": _phuber,
    "zero-one": _zero_one,
}


def base(name: str, f: Row, **options: float) -> list[Number]:
    """The ordinary loss L(f, y) for every y (Section 4.3); options: q for gce, tau for phuber."""
    return _BASES[name](f, **options)


# Losses of a set of complementary labels


def unbiased(base_values: Sequence[Number], excluded: Flags) -> Number:
    """Eq. 10: sum_{y not in Ybar} l_y - (k-1-s)/s sum_{y in Ybar} l_y."""
    k = len(excluded)
    inside = [base_values[y] for y in range(k) if excluded[y]]
    outside = [base_values[y] for y in range(k) if not excluded[y]]
    s = len(inside)
    return mp.fsum(outside) - mp.mpf(k - 1 - s) / s * mp.fsum(inside)


def _set_weight(excluded: Flags, text: bool) -> Number:
    """(k-1)/s as released, 2(k-1)/s in the text (Eq. 12)."""
    s = len([flag for flag in excluded if flag])
    return mp.mpf((2 if text else 1) * (len(excluded) - 1)) / s


def log(f: Row, excluded: Flags, text: bool = False) -> Number:
    """LOG: (k-1)/s (-log z), with -log z = log(1 + (1-z)/z)."""
    inside = mp.fsum([mp.exp(f[y]) for y in range(len(f)) if excluded[y]])
    outside = mp.fsum([mp.exp(f[y]) for y in range(len(f)) if not excluded[y]])
    return _set_weight(excluded, text) * mp.log1p(inside / outside)


def exp(f: Row, excluded: Flags, text: bool = False) -> Number:
    """EXP: (k-1)/s exp(-z)."""
    p = softmax(f)
    z = mp.fsum([p[y] for y in range(len(f)) if not excluded[y]])
    return _set_weight(excluded, text) * mp.exp(-z)


def mae_prime(f: Row, excluded: Flags) -> Number:
    """L'_MAE of Eq. 12: 1 - z, the probability on the excluded classes."""
    p = softmax(f)
    return mp.fsum([p[y] for y in range(len(f)) if excluded[y]])


def _psi(name: str, u: Number) -> Number:
    """Psi of CLPL: max(0, 1-u)^2 or log(1 + exp(-u))."""
    if name == "squared-hinge":
        return (1 - u) ** 2 if u < 1 else mp.mpf(0)
    if name == "logistic":
        return mp.log1p(mp.exp(-u))
    raise ValueError(name)


def likelihood(f: Row, excluded: Flags, error: float = 0.0) -> Number:
    """Likelihood: -log(z + g (1 - z)), g = e (k-s) / ((1-e) s)."""
    p, k, s = softmax(f), len(f), max(1, sum(map(bool, excluded)))
    e = mp.mpf(error)
    inside = mp.fsum([p[y] for y in range(k) if excluded[y]])
    outside = mp.fsum([p[y] for y in range(k) if not excluded[y]])
    if e == 0:
        return mp.log1p(inside / outside)
    return -mp.log(outside + e * (k - s) / ((1 - e) * s) * inside)


def clpl(f: Row, excluded: Flags, psi: str = "squared-hinge") -> Number:
    """CLPL (Cour et al. 2011): Psi(mean of f over candidates) + sum_{y in Ybar} Psi(-f_y)."""
    candidates = [mp.mpf(f[y]) for y in range(len(f)) if not excluded[y]]
    total = _psi(psi, mp.fsum(candidates) / len(candidates))
    for y in range(len(f)):
        if excluded[y]:
            total += _psi(psi, -mp.mpf(f[y]))
    return total


def cc(f: Row, excluded: Flags) -> Number:
    """CC (Feng et al. 2020, NeurIPS): -log z = log(1 + (1-z)/z)."""
    return mp.log1p(_total(softmax(f), excluded) / _total(softmax(f), _candidates(excluded)))


def chance_of_set(excluded: Flags, row: Sequence[Number]) -> Number:
    """How likely a set is among all of its size, if its chance is the product of its classes'."""
    members = [c for c, out in enumerate(excluded) if out]
    every = [mp.fprod(row[c] for c in one) for one in combinations(range(len(row)), len(members))]
    return mp.fprod(row[c] for c in members) / mp.fsum(every)


def even_row(k: int, y: int) -> list[Number]:
    return [mp.mpf(c != y) / (k - 1) for c in range(k)]


def cpe_f(f: Row, excluded: Flags, q: Sequence[Sequence[Number]] | None = None) -> Number:
    """CPE-F for a set (Lin and Lin 2023): -log sum_y p_y P(set | y, size), by listing all sets."""
    k = len(f)
    rows = [even_row(k, y) for y in range(k)] if q is None else q
    p = softmax(f)
    return -mp.log(mp.fsum(p[y] * chance_of_set(excluded, rows[y]) for y in range(k)))


def revise_transition(
    logits: Sequence[Row], sets: Sequence[Flags], q: Sequence[Sequence[Number]], prior: int = 1
) -> list[list[Number]]:
    """One step of EM: Q times what was ruled out likely over what it expects, in rows of sum 1."""
    k, found = len(q), []
    seen = [[mp.mpf(0)] * k for _ in q]
    expected = [[mp.mpf(0)] * k for _ in q]
    for f, excluded in zip(logits, sets, strict=True):
        joint = [p * chance_of_set(excluded, q[y]) for y, p in enumerate(softmax(f))]
        size = sum(excluded)
        for y in range(k):
            r = joint[y] / mp.fsum(joint)
            for c in range(k):
                seen[y][c] += r * excluded[c]
            for one in combinations(range(k), size):
                chance = chance_of_set([c in one for c in range(k)], q[y])
                for c in one:
                    expected[y][c] += r * chance
    for y in range(k):
        row = [
            q[y][c] * (seen[y][c] + prior * q[y][c]) / (expected[y][c] + prior * q[y][c])
            if q[y][c]
            else mp.mpf(0)
            for c in range(k)
        ]
        found.append([one / mp.fsum(row) for one in row])
    return found


def targeted(f: Row, excluded: Flags, target: Sequence[Number] | None = None) -> Number:
    """PRODEN, RC, CAVL, POP: -sum_j t_j log p_j; at first t_j = 1/|C| on candidates."""
    k = len(f)
    t = _shares([mp.mpf(1)] * k, _candidates(excluded)) if target is None else target
    log_p = log_softmax(f)
    return -mp.fsum([mp.mpf(t[j]) * log_p[j] for j in range(k)])


def lws(
    f: Row, excluded: Flags, target: Sequence[Number] | None = None, beta: float = 1.0
) -> Number:
    """LWS (Wen et al. 2021): sum_C t_j sigmoid(-f_j) + beta sum_E t_j sigmoid(f_j), t = 1/k."""
    k = len(f)
    total = mp.mpf(0)
    for j in range(k):
        t = mp.mpf(1) / k if target is None else mp.mpf(target[j])
        if excluded[j]:
            total += mp.mpf(beta) * t / (1 + mp.exp(-mp.mpf(f[j])))
        else:
            total += t / (1 + mp.exp(f[j]))
    return total


# Every answer of the labelling process


def answered(base_values: Sequence[Number], possible: Flags, rate: Number) -> Number:
    """No answer wasted: sum_y l_y (1(y in Z) - q) / (1 - q)."""
    q = mp.mpf(rate)
    total = mp.mpf(0)
    for y in range(len(possible)):
        indicator = 1 if possible[y] else 0
        total += base_values[y] * (indicator - q) / (1 - q)
    return total


def wrong_class_rate(k: int, s: int) -> Number:
    """q_s = [s(s-1) + (k-s)(k-s-1)] / (k(k-1))."""
    return mp.mpf(s * (s - 1) + (k - s) * (k - s - 1)) / (k * (k - 1))


# Losses of one complementary label


def free(f: Row, c: int) -> Number:
    """Eq. 3 with cross entropy: sum_y l_y - (k-1) l_c = sum_{y != c} l_y - (k-2) l_c."""
    values = _cce(f)
    return _others(values, c) - (len(f) - 2) * values[c]


def binary(name: str, u: Number) -> Number:
    """Sigmoid loss 1/(1+e^u), or ramp loss max(0, min(2, 1-u))/2."""
    u = mp.mpf(u)
    if name == "sigmoid":
        return 1 / (1 + mp.exp(u))
    if name == "ramp":
        return max(mp.mpf(0), min(mp.mpf(2), 1 - u)) / 2
    raise ValueError(name)


def pc(f: Row, c: int, binary_name: str = "sigmoid") -> Number:
    """PC as released: (k-1) sum_j l(f_j - f_c) - k(k-1)/2 + (k-1), over all j."""
    k = len(f)
    total = mp.mpf(0)
    for j in range(k):
        total += binary(binary_name, mp.mpf(f[j]) - f[c])
    return (k - 1) * total - mp.mpf(k * (k - 1)) / 2 + (k - 1)


def ova(f: Row, c: int, binary_name: str = "sigmoid") -> Number:
    """Lbar_OVA of Section 2.2: 1/(k-1) sum_{y' != c} l(f_y') + l(-f_c)."""
    k = len(f)
    total = mp.mpf(0)
    for y in range(k):
        if y != c:
            total += binary(binary_name, f[y])
    return total / (k - 1) + binary(binary_name, -f[c])


def forward(f: Row, c: int, transition: Sequence[Row] | None = None) -> Number:
    """Forward: -log (p^T Q)_c; near 1 by 1 - (p^T Q)_c = sum_y p_y (1 - Q_yc)."""
    k = len(f)
    p = softmax(f)
    if transition is None:
        column = [mp.mpf(0) if y == c else mp.mpf(1) / (k - 1) for y in range(k)]
    else:
        column = [mp.mpf(transition[y][c]) for y in range(k)]
    rest = mp.fsum([p[y] * (1 - column[y]) for y in range(k)])
    if 2 * rest < 1:
        return -mp.log1p(-rest)
    return -mp.log(mp.fsum([p[y] * column[y] for y in range(k)]))


def scl_nl(f: Row, c: int) -> Number:
    """SCL-NL (Chou et al. 2020): -log(1 - p_c) = log(1 + p_c / (1 - p_c))."""
    p = softmax(f)
    return mp.log1p(p[c] / _others(p, c))


def scl_exp(f: Row, c: int) -> Number:
    """SCL-EXP (Chou et al. 2020): exp(p_c)."""
    return mp.exp(softmax(f)[c])


def l_uw(f: Row, c: int) -> Number:
    """L-UW (Gao and Zhang 2021): -log q_c, q = softmax(1 - p)."""
    p = softmax(f)
    return -log_softmax([_others(p, j) for j in range(len(f))])[c]


def l_w(f: Row, c: int) -> Number:
    """L-W (Gao and Zhang 2021): (1 + (1 - p_c)/(k-1)) (-log q_c)."""
    return (1 + _others(softmax(f), c) / (len(f) - 1)) * l_uw(f, c)


def op(f: Row, c: int) -> Number:
    """OP (Liu et al. 2023): -log r_c, r = softmax(-f)."""
    return -log_softmax([-v for v in f])[c]


def op_w(f: Row, c: int) -> Number:
    """OP-W (Liu et al. 2023): (p_c w_c + 1e-6) (-log r_c), w = softmax(1 + min(1/r, 1e18))."""
    r = softmax([-v for v in f])
    w = softmax([1 + min(1 / v, mp.mpf(10) ** 18) for v in r])
    return (softmax(f)[c] * w[c] + mp.mpf(10) ** -6) * op(f, c)


# Batches


def pairs(E: Sequence[Flags]) -> list[tuple[int, int]]:
    """The decomposition of Section 4.1: (i, c) for every excluded class c of every row i."""
    result = []
    for i in range(len(E)):
        for c in range(len(E[i])):
            if E[i][c]:
                result.append((i, c))
    return result


def _weights(E: Sequence[Flags], weight: Weight) -> list[Number]:
    """One weight per row, 1 unless given."""
    return [mp.mpf(1 if weight is None else weight[i]) for i in range(len(E))]


def mean_over_pairs(
    loss: Callable[[Row, int], Number],
    F: Sequence[Row],
    E: Sequence[Flags],
    weight: Weight = None,
) -> Number:
    """After shuffle: sum w_i loss(f_i, c) / sum w_i over the pairs (i, c)."""
    w = _weights(E, weight)
    total = mp.fsum([w[i] * loss(F[i], c) for i, c in pairs(E)])
    return total / mp.fsum([w[i] for i, _ in pairs(E)])


def mean_over_rows(
    loss: Callable[[Row, Flags], Number],
    F: Sequence[Row],
    E: Sequence[Flags],
    weight: Weight = None,
) -> Number:
    """Eq. 11, the empirical mean: sum w_i loss(f_i, Ybar_i) / sum w_i over the rows."""
    w = _weights(E, weight)
    total = mp.fsum([w[i] * loss(F[i], E[i]) for i in range(len(F))])
    return total / mp.fsum(w)


def counts(E: Sequence[Flags], weight: Weight = None) -> list[Number]:
    """n_c, the (weighted) number of pairs with ybar = c."""
    w = _weights(E, weight)
    n = [mp.mpf(0) for _ in E[0]]
    for i, c in pairs(E):
        n[c] += w[i]
    return n


def column_means(F: Sequence[Row], E: Sequence[Flags], weight: Weight = None) -> list[list[Number]]:
    """m_c[j], the (weighted) mean of -log p_j over the pairs with ybar = c; 0 for an absent c."""
    k = len(E[0])
    w, n = _weights(E, weight), counts(E, weight)
    m = [[mp.mpf(0) for _ in range(k)] for _ in range(k)]
    for i, c in pairs(E):
        values = _cce(F[i])
        for j in range(k):
            if n[c] > 0:
                m[c][j] += w[i] * values[j] / n[c]
    return m


def _prior(E: Sequence[Flags], prior: Row | None, weight: Weight) -> list[Number]:
    """pibar_c: as given, or the batch's own (weighted) shares n_c / sum n."""
    if prior is not None:
        return [mp.mpf(v) for v in prior]
    n = counts(E, weight)
    return [v / mp.fsum(n) for v in n]


def ordinary_parts(
    F: Sequence[Row],
    E: Sequence[Flags],
    prior: Row | None = None,
    weight: Weight = None,
    form: str = "theorem",
) -> list[Number]:
    """L_j = sum_c pibar_c m_c[j] - (k-1) pibar_j m_j[j]; "2019" has pibar_j inside the sum.

    The term c = j is merged: the sum is over c != j and the factor k-2, which is exact.
    """
    k, pi, m = len(E[0]), _prior(E, prior, weight), column_means(F, E, weight)
    outer = {"theorem": False, "2019": True}[form]
    parts = []
    for j in range(k):
        total = -(k - 2) * pi[j] * m[j][j]
        for c in range(k):
            if c != j:
                total += pi[j if outer else c] * m[c][j]
        parts.append(total)
    return parts


def excluded_parts(
    F: Sequence[Row], E: Sequence[Flags], prior: Row | None = None, weight: Weight = None
) -> list[Number]:
    """V_c = pibar_c (sum_j m_c[j] - (k-1) m_c[c]), the term j = c merged."""
    k, pi, m = len(E[0]), _prior(E, prior, weight), column_means(F, E, weight)
    return [pi[c] * (_others(m[c], c) - (k - 2) * m[c][c]) for c in range(k)]


def free_batch(parts: Sequence[Number]) -> Number:
    """FREE: sum_j L_j."""
    return mp.fsum(parts)


def nn_batch(parts: Sequence[Number]) -> Number:
    """NN: sum_j max(L_j, 0)."""
    return mp.fsum([part for part in parts if part > 0])


def ga_batch(parts: Sequence[Number], n: Sequence[Number]) -> Number:
    """GA: -sum_j min(n_j L_j, 0) if any n_j L_j < 0, else sum_j L_j."""
    negative = [n[j] * parts[j] for j in range(len(parts)) if n[j] * parts[j] < 0]
    if negative:
        return -mp.fsum(negative)
    return mp.fsum(parts)


def transition_parts(
    F: Sequence[Row],
    E: Sequence[Flags],
    q: Sequence[Row],
    split: str,
    prior: Row | None = None,
    weight: Weight = None,
) -> list[Number]:
    """U = Q^-1: L_j = sum_c pibar_c U_cj m_c[j] "ordinary", V_c = pibar_c sum_j U_cj m_c[j]."""
    k, pi, m = len(E[0]), _prior(E, prior, weight), column_means(F, E, weight)
    u = mp.inverse(mp.matrix([[mp.mpf(v) for v in row] for row in q]))
    terms = [[pi[c] * u[c, j] * m[c][j] for j in range(k)] for c in range(k)]
    if split == "ordinary":
        return [mp.fsum([terms[c][j] for c in range(k)]) for j in range(k)]
    if split == "excluded":
        return [mp.fsum(terms[c]) for c in range(k)]
    raise ValueError(split)


def corrected_with_transition(
    F: Sequence[Row],
    E: Sequence[Flags],
    q: Sequence[Row],
    rule: str,
    split: str,
    prior: Row | None = None,
    weight: Weight = None,
) -> Number:
    """FREE, NN or GA of the parts under Q; row y of Q: how likely each class is ruled out."""
    parts = transition_parts(F, E, q, split, prior, weight)
    if rule == "ga":
        return ga_batch(parts, counts(E, weight))
    return {"free": free_batch, "nn": nn_batch}[rule](parts)


def scarce(
    F: Sequence[Row], E: Sequence[Flags], class_prior: Row | None = None, weight: Weight = None
) -> Number:
    """SCARCE (Wang et al. 2024), l(u) = log(1 + exp(-u)), over the rows that rule out something.

    sum_c (1-pi_c) mean_{N_c} l(-f_c) + |mean_B l(f_c) - (1-pi_c) mean_{N_c} l(f_c)|, where N_c
    are the rows that rule out c. A mean over nothing is 0.
    """
    k, w = len(F[0]), _weights(E, weight)
    batch = [i for i in range(len(F)) if any(E[i])]
    total = mp.mpf(0)
    for c in range(k):
        rest = 1 - (mp.mpf(1) / k if class_prior is None else mp.mpf(class_prior[c]))
        negative = [i for i in batch if E[i][c]]
        total += rest * _logistic_mean(F, c, -1, negative, w)
        unlabelled = _logistic_mean(F, c, 1, batch, w)
        total += abs(unlabelled - rest * _logistic_mean(F, c, 1, negative, w))
    return total


def _logistic_mean(
    F: Sequence[Row], c: int, sign: int, members: Sequence[int], w: Sequence[Number]
) -> Number:
    """The weighted mean of l(sign f_c) over some rows."""
    total = mp.fsum([w[i] for i in members])
    if total == 0:
        return mp.mpf(0)
    return mp.fsum([w[i] * _psi("logistic", sign * mp.mpf(F[i][c])) for i in members]) / total


# Targets revised from epoch to epoch


def revise_proden(f: Row, excluded: Flags) -> list[Number]:
    """PRODEN (Lv et al. 2020) and RC: p_j / z on candidates, 0 elsewhere."""
    return _shares(softmax(f), _candidates(excluded))


def share_out(F: Sequence[Row], E: Sequence[Flags], balance: float = 0.5) -> list[list[Number]]:
    """PRODEN, balanced: every candidate weighed by (share of its sets / share it has)^balance."""
    n, k = len(F), len(F[0])
    now = [revise_proden(f, e) for f, e in zip(F, E, strict=True)]
    first = [_shares([mp.mpf(1)] * k, _candidates(e)) for e in E]
    weight = []
    for j in range(k):
        even, own = (max(sum(row[j] for row in rows) / n, mp.mpf(1) / n) for rows in (first, now))
        weight.append((even / own) ** balance)
    return [_shares([p * w for p, w in zip(row, weight, strict=True)], _candidates(e))
            for row, e in zip(now, E, strict=True)]  # fmt: skip


def revise_lws(f: Row, excluded: Flags) -> list[Number]:
    """LWS: p_j / z on candidates, p_j / (1-z) on ruled-out classes."""
    kept, out = revise_proden(f, excluded), revise_proden(f, _candidates(excluded))
    return [out[j] if excluded[j] else kept[j] for j in range(len(f))]


def revise_cavl(f: Row, excluded: Flags) -> list[Number]:
    """CAVL (Zhang et al. 2022): the candidate with the largest |f_j - 1| f_j; ties share."""
    values = [abs(mp.mpf(v) - 1) * v for v in f]
    largest = max(values[j] for j in range(len(f)) if not excluded[j])
    chosen = [not excluded[j] and values[j] == largest for j in range(len(f))]
    return _shares([mp.mpf(1)] * len(f), chosen)


def pop_epochs(
    epochs: Sequence[Sequence[Row]],
    E: Sequence[Flags],
    theta: float = 0.001,
    increase: float = 0.001,
    authors: bool = False,
) -> list[list[list[Number]]]:
    """POP (Xu et al. 2023): the targets at the end of each epoch.

    PRODEN's shares among the candidates that the data gave, every epoch. At the end of epochs 21,
    26, 31... a class leaves what is left of its row if its mean share m_j of the last five epochs
    is below theta max_j m_j and another class stays; the target is m on what is left. The authors
    share among what is left in all later epochs; the re-implementation by Fuchs and Kalinke does
    not, and what left is a target again until the next purification.
    """
    n, k = len(E), len(E[0])
    bound, left = mp.mpf(theta), [_candidates(excluded) for excluded in E]
    shares: list[list[list[Number]]] = []
    result = []
    for epoch, F in enumerate(epochs, 1):
        basis = left if authors else [_candidates(excluded) for excluded in E]
        shares.append([_shares(softmax(F[i]), basis[i]) for i in range(n)])
        targets, changed = shares[-1], 0
        if epoch > 20 and epoch % 5 == 1:
            targets, left = [], [list(row) for row in left]
            for i in range(n):
                mean = [mp.fsum([past[i][j] for past in shares[-5:]]) / 5 for j in range(k)]
                low = [mean[j] < bound * max(mean) for j in range(k)]
                if any(left[i][j] and not low[j] for j in range(k)):
                    changed += sum(left[i][j] and low[j] for j in range(k))
                    left[i] = [left[i][j] and not low[j] for j in range(k)]
                targets.append(_shares(mean, left[i]))
            if bound < 0.4 and changed < mp.mpf(n * k) / 10000:
                bound *= 1 + mp.mpf(increase)
        result.append(targets)
    return result


def crosel_epochs(
    epochs: Sequence[Sequence[Row]],
    E: Sequence[Flags],
    threshold: float = 0.9,
    strength: float = 2.0,
) -> list[list[list[Number]]]:
    """CroSel's selection (Tian et al. 2024): the targets at the end of each epoch.

    PRODEN's before the end of epoch 10. Then a row is selected whose prediction is a candidate,
    was the same in the last three epochs, and whose mean p over these has a maximum above the
    threshold. Target: strength (1 - share selected) p on candidates, not normalised, plus
    1/share on the prediction of a selected row if the share is above 0.05.
    """
    n, k = len(E), len(E[0])
    result = []
    for epoch in range(1, len(epochs) + 1):
        last = [[softmax(f) for f in F] for F in epochs[max(0, epoch - 3) : epoch]]
        if epoch < 10:
            result.append([_shares(last[-1][i], _candidates(E[i])) for i in range(n)])
            continue
        guess = [[_largest(p[i]) for p in last] for i in range(n)]
        mean = [[mp.fsum([p[i][j] for p in last]) / 3 for j in range(k)] for i in range(n)]
        selected = [
            not E[i][guess[i][-1]] and len(set(guess[i])) == 1 and max(mean[i]) > threshold
            for i in range(n)
        ]
        share = mp.mpf(sum(selected)) / n
        targets = []
        for i in range(n):
            t = [
                mp.mpf(strength) * (1 - share) * (0 if E[i][j] else last[-1][i][j])
                for j in range(k)
            ]
            if selected[i] and share > 0.05:
                t[guess[i][-1]] += 1 / share
            targets.append(t)
        result.append(targets)
    return result


def shares(E: Sequence[Flags]) -> list[Number]:
    """Unbiased shares of the classes, drawn towards equal ones by their variance."""
    k, told = len(E[0]), [e for e in E if any(e)]
    values = [[1 - mp.mpf(k - 1) / sum(e) * e[c] for c in range(k)] for e in told]
    mean = [mp.fsum(v[c] for v in values) / len(told) for c in range(k)]
    noise = mp.fsum((v[c] - mean[c]) ** 2 for v in values for c in range(k)) / len(told) ** 2
    off = mp.fsum((m - mp.mpf(1) / k) ** 2 for m in mean)
    believed = max(0, 1 - noise / off) if off else 0
    found = [max(mp.mpf(1) / k + believed * (m - mp.mpf(1) / k), mp.mpf("0.1") / k) for m in mean]
    return [one / mp.fsum(found) for one in found]


def self_taught_epochs(
    epochs: Sequence[Sequence[Row]], E: Sequence[Flags], strength: float
) -> list[list[list[Number]]]:
    """Targets of rows that rule nothing out, at the end of each epoch; 0 for all others.

    From epoch 10 on: the moving mean of p, made as frequent in each class as the shares say,
    squared, made to sum to `strength` (sum of (k-1)/s of the others) / (number of such rows).
    """
    n, k, result = len(E), len(E[0]), []
    silent = [i for i in range(n) if not any(E[i])]
    weight = strength * mp.fsum(mp.mpf(k - 1) / sum(e) for e in E if any(e)) / len(silent)
    mean = [softmax(f) for f in epochs[0]]
    for epoch, F in enumerate(epochs, 1):
        if epoch > 1:
            now = [softmax(f) for f in F]
            mean = [
                [mp.mpf("0.7") * mean[i][j] + mp.mpf("0.3") * now[i][j] for j in range(k)]
                for i in range(n)
            ]
        targets = [[mp.mpf(0)] * k for _ in range(n)]
        often = [mp.fsum(mean[i][j] for i in silent) / len(silent) for j in range(k)]
        for i in silent if epoch >= 10 else []:
            sharp = [(mean[i][j] * share / often[j]) ** 2 for j, share in enumerate(shares(E))]
            targets[i] = [weight * one / mp.fsum(sharp) for one in sharp]
        result.append(targets)
    return result


def conformal_candidates(
    F: Sequence[Row],
    E: Sequence[Flags],
    calibration: Sequence[int],
    epoch: int,
    alpha: float = 0.05,
) -> list[list[bool]]:
    """Conformal cleaning (Fuchs and Kalinke 2025): the candidates that stay at this epoch, from 1.

    All before epoch 11. Then class j stays if (1 + #{a_i >= 1 - p_j (1-eps)}) / (m+1) is above
    alpha + beta: a_i = 1 - max_C p of the m calibration rows, eps = 0.5^(epoch - 10), beta the
    mean over all rows of their p on ruled-out classes. A row that would lose all keeps all.
    """
    n, k = len(E), len(E[0])
    candidates = [_candidates(excluded) for excluded in E]
    if epoch < 11:
        return candidates
    p = [softmax(f) for f in F]
    beta = mp.fsum([_total(p[i], E[i]) for i in range(n)]) / n
    scores = [min(_others(p[i], j) for j in range(k) if not E[i][j]) for i in calibration]
    eps = mp.mpf(2) ** (10 - epoch)
    result = []
    for i in range(n):
        stays = []
        for j in range(k):
            score = _others(p[i], j) + eps * p[i][j]
            rank = mp.mpf(1 + sum(a >= score for a in scores)) / (len(scores) + 1)
            stays.append(candidates[i][j] and bool(rank > mp.mpf(alpha) + beta))
        result.append(stays if any(stays) else candidates[i])
    return result


# Theory


def purity(k: int, s: int, decomposed: bool) -> Number:
    """Supervision purity (Table 1): 1/(k-1) decomposed, 1/(k-s) as a set."""
    if decomposed:
        return mp.mpf(1) / (k - 1)
    return mp.mpf(1) / (k - s)


def error_bound(
    rho: float,
    k: int,
    law: Row,
    counts: Sequence[int],
    delta: float,
    bound: float,
    complexity: Callable[[int], Number],
) -> Number:
    """Theorem 4: sum_j p(j) (4 sqrt(2) rho k(k-1)/j R(n_j) + C_j / sqrt(n_j)) over n_j > 0."""
    total = mp.mpf(0)
    root = mp.sqrt(mp.log(2 * (k - 1) / mp.mpf(delta)) / 2)
    for j in range(1, k):
        n = counts[j - 1]
        if n > 0:
            slope = 4 * mp.sqrt(2) * rho * k * (k - 1) / j
            deviation = (4 * k - 4 * j - 2) * mp.mpf(bound) * root / mp.sqrt(n)
            total += law[j - 1] * (slope * complexity(n) + deviation)
    return total
