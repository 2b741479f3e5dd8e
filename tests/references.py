"""Independent references for the losses: plain loops in 60-digit arithmetic.

Written from PROTOCOL.md and the paper alone, never from the code under test. `f` is one row of
k logits, `excluded` the k flags of its ruled-out classes; `F` and `E` are lists of such rows.
Inputs are Python numbers, taken at their exact binary values; results are mpf or lists of mpf.

A difference such as 1 - p is computed as the sum over the other classes, so that small results
keep all their digits, at logits of +-1e4 too. What is left is the cancellation inside a signed
sum (`unbiased`, `pc`, sums of parts): an absolute error of about 1e-59 times the largest term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

Number = Any  # an mpf of `mp` below
Row = Sequence[float]
Flags = Sequence[bool]
Weight = Sequence[float] | None

# A context of our own: the global precision stays as it is. Loaded by name because mpmath has no
# types: mypy then needs neither stubs nor an ignore.
mp: Any = import_module("mpmath").MPContext()
mp.dps = 60


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
