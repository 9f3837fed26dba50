"""Reference numbers for the accounting, at 120 digits: writes or checks the vectors of this folder.

    python3 -m pip install mpmath
    python3 vectors.py write    # makes normal_cdf.json, profile.json, budget.json and pure.json anew
    python3 vectors.py check    # recomputes those four and published_forms.json, by its own routes
"""

import json
import pathlib
import sys

from mpmath import binomial, erfc, exp, expm1, inf, log, mp, mpf, quad, sinh, sqrt, tanh

mp.dps = 120
HERE = pathlib.Path(__file__).parent


def phi_cdf(x):
    """Standard normal CDF; erfc keeps the relative precision of both tails."""
    return erfc(-x / sqrt(2)) / 2


def profile(mu, epsilon):
    """delta(epsilon) of mu-GDP as Balle and Wang write it; the digits pay for the cancellation."""
    mu, epsilon = mpf(mu), mpf(epsilon)
    return phi_cdf(mu / 2 - epsilon / mu) - exp(epsilon) * phi_cdf(-mu / 2 - epsilon / mu)


def log_profile(mu, epsilon):
    """Its logarithm, with digits enough for the size of the cancellation."""
    mu, epsilon = mpf(mu), mpf(epsilon)
    a = mu / 2 - epsilon / mu
    if a > 0:
        # Near 1 the digits are in the complement.
        return mp.log1p(-(phi_cdf(-a) + exp(epsilon) * phi_cdf(-mu / 2 - epsilon / mu)))
    if a < -10000:
        # Leading factor and integral of the Mills form: erfc of such arguments needs no help, its difference does.
        t, h = epsilon / mu, mu / 2
        integral = quad(lambda s: sinh(h * s / t) * exp(-s - (s / t) ** 2 / 2), [0, 1, 5, 20, 100, 400]) * 2 / t
        return -a * a / 2 - log(2 * mp.pi) / 2 + log(integral)
    return log(profile(mu, epsilon))


def profile_by_quadrature(mu, epsilon):
    """The same from the definition, the integral of (p - e^epsilon q)+ for N(mu,1) against N(0,1)."""
    mu, epsilon = mpf(mu), mpf(epsilon)
    kink = epsilon / mu + mu / 2
    density = lambda x: exp(-((x - mu) ** 2) / 2) / sqrt(2 * mp.pi)
    # p - e^epsilon q = p (1 - e^{-mu (x - kink)})
    gain = lambda x: density(x) * -expm1(-mu * (x - kink))
    scale = 1 / max(mpf(1), kink)  # how fast the density falls past the kink
    cuts = [kink] + [kink + scale * mpf(2) ** power for power in range(-1, 8)]
    cuts += [cut for cut in (mu - 4, mpf(mu), mu + 4, kink + 40) if cut > kink]
    return quad(gain, sorted(set(cuts)) + [inf])


def bisect(low, high, is_low):
    """Root of a monotone condition on a positive range, by halving in the logarithm."""
    low, high = log(mpf(low)), log(mpf(high))
    for _ in range(90):
        middle = (low + high) / 2
        if is_low(exp(middle)):
            low = middle
        else:
            high = middle
    return exp(low)


def budget(epsilon, delta):
    """The mu whose profile passes through (epsilon, delta); epsilon/mu stays where erfc can be computed."""
    epsilon, delta = mpf(epsilon), mpf(delta)
    return bisect(max(2 * delta, epsilon / 10000), 1000, lambda mu: profile(mu, epsilon) < delta)


def epsilon_of(mu, delta):
    """The epsilon at which the profile of mu is delta."""
    return bisect("1e-9", "1e5", lambda epsilon: profile(mu, epsilon) > mpf(delta))


def mu_of_pure(epsilon):
    """2 Phi^-1(e^epsilon / (1 + e^epsilon)), from the tail or the mass above one half."""
    epsilon = mpf(epsilon)
    if epsilon < 1:
        mass = tanh(epsilon / 2)
        return bisect("1e-320", 10, lambda mu: mp.erf(mu / 2 / sqrt(2)) < mass)
    tail = 1 / (1 + exp(epsilon))
    return bisect("1e-3", "1e6", lambda mu: phi_cdf(-mu / 2) > tail)


def optimal_pure_composition(epsilon0, k, epsilon):
    """Kairouz, Oh and Viswanath 2015, Theorem 3.3: k-fold randomised response, summed over the number of truths."""
    epsilon0, total = mpf(epsilon0), mpf(0)
    for truths in range(k + 1):
        loss = (2 * truths - k) * epsilon0
        if loss > epsilon:
            total += binomial(k, truths) * (exp(truths * epsilon0) - exp(epsilon + (k - truths) * epsilon0))
    return total / (1 + exp(epsilon0)) ** k


def normal_cdf_vectors():
    points = [-1e8, -123456.789, -1e4, -1000.5, -100.25, -40.0, -38.6, -37.5, -20.0, -10.0, -8.3, -6.0]
    points += [-5.5, -4.0, -3.0, -2.5, -2.0, -1.75, -1.5 - 2**-40, -1.5, -1.5 + 2**-40, -1.25, -1.0, -0.75, -0.5, -0.25, -0.1]
    points += [-1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 1.499, 1.5, 1.501, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0]
    points += [37.0, 37.5, 40.0]
    return [{"x": x, "log_cdf": float(mp.log1p(-phi_cdf(-mpf(x))) if x > 0 else log(phi_cdf(mpf(x))))} for x in points]


def profile_vectors():
    rows = [(1e-7, 1e-8), (1e-7, 1.0), (1e-7, 1e4), (1e-12, 1e-11), (3e-5, 1e-3), (100.0, 1e4), (200.0, 1e4)]
    rows += [(6e4, 1.8e9), (0.2, 10.0), (0.05, 3.0), (0.05, 10.0), (0.01, 1.0), (0.01, 3.0), (0.01, 10.0)]  # 0 in published_forms
    for mu in [1e-300, 1e-100, 1e-7, 1e-5, 1e-3, 0.05, 0.3, 1.0, 2.5, 10.0, 100.0, 1000.0, 60000.0]:
        for a in [38.0, 6.0, 3.0, 1.0, 0.25, 0.0, -0.05, -0.5, -1.4, -1.6, -3.0, -8.0, -20.0, -37.0, -300.0]:
            epsilon = mu * (mu / 2 - a)
            if epsilon >= 0:
                rows.append((mu, epsilon))
        rows.append((mu, 0.0))
    out = []
    for mu, epsilon in rows:
        # Subtracting numbers that agree to mu digits and more: take that many digits on top.
        mp.dps = 120 + 2 * int(abs(mp.log10(mpf(mu)))) + 40
        out.append({"mu": mu, "epsilon": epsilon, "log_delta": float(log_profile(mu, epsilon))})
        mp.dps = 120
    return out


def budget_vectors():
    out = []
    for epsilon in [1e-8, 1e-4, 0.01, 0.5, 1.0, 10.0, 1000.0, 1e4]:
        for delta in [1e-300, 1e-100, 1e-12, 1e-5, 0.1, 0.9, 1 - 1e-9]:
            out.append({"epsilon": epsilon, "delta": delta, "mu": float(budget(epsilon, delta))})
    return out


def pure_vectors():
    return [{"epsilon": e, "mu": float(mu_of_pure(e))}
            for e in [1e-300, 1e-9, 1e-5, 0.01, 0.1, 0.999, 1.0, 1.001, 3.0, 8.0, 50.0, 700.0, 800.0, 1e4, 1e6]]


MAKERS = {"normal_cdf": normal_cdf_vectors, "profile": profile_vectors, "budget": budget_vectors, "pure": pure_vectors}


def published_differences():
    """Every number of published_forms.json that has a closed form, recomputed; yields (id, name, stored, found)."""
    mp.dps = 60
    for case in json.loads((HERE / "published_forms.json").read_text()):
        given, expect, kind = case["params"], case["expect"], case["kind"]
        found = {}
        if kind == "gaussian_sigma":
            found["mu"] = budget(given["epsilon"], given["delta"])
            found["sigma"] = mpf(given["sensitivity"]) / found["mu"]
            classic = given["sensitivity"] / mpf(expect["classic_sigma"])
            found["delta_of_classic_sigma"] = profile(classic, given["epsilon"])
        elif kind == "gaussian_delta":
            found["delta"] = profile(given["sensitivity"] / mpf(given["sigma"]), given["epsilon"])
            if found["delta"] > mpf("1e-250"):
                yield case["id"], "delta by quadrature", expect["delta"], profile_by_quadrature(
                    given["sensitivity"] / mpf(given["sigma"]), given["epsilon"])
        elif kind == "gaussian_composition":
            found["mu"] = sqrt(mpf(given["k"])) * given["sensitivity"] / mpf(given["sigma"])
            found["rho"] = found["mu"] ** 2 / 2
            found["epsilon"] = epsilon_of(found["mu"], given["delta"])
        elif kind == "gaussian_heterogeneous":
            found["mu"] = sqrt(sum(mpf(mu) ** 2 for mu in given["mus"]))
            found["epsilon"] = epsilon_of(found["mu"], given["delta"])
        elif kind == "zcdp_to_epsilon":
            found["gdp_if_gaussian"] = epsilon_of(sqrt(2 * mpf(given["rho"])), given["delta"])
        elif kind == "rounded_gaussian_delta":
            found["delta_gdp_upper_bound"] = profile(given["shift"][0] / mpf(given["sigma"]), given["epsilon"])
        elif kind == "pure_composition_optimal":
            half = mpf(expect["epsilon_basic"]) / 2
            found["delta_at_half"] = optimal_pure_composition(given["epsilon0"], given["k"], half)
            found["epsilon_basic"] = mpf(given["epsilon0"]) * given["k"]
        for name, value in found.items():
            if expect[name] is not None:
                yield case["id"], name, expect[name], value


def close(stored, found, tolerance):
    return abs(mpf(stored) - found) <= tolerance * abs(found) or (stored == 0 and abs(found) < mpf("1e-320"))


def main(action):
    if action == "write":
        for name, make in MAKERS.items():
            rows = ",\n".join("  " + json.dumps(row) for row in make())
            (HERE / f"{name}.json").write_text(f"[\n{rows}\n]\n")
        return 0
    compared = different = 0
    for name, make in MAKERS.items():
        if json.loads((HERE / f"{name}.json").read_text()) != make():
            print(f"{name}.json differs from what this script makes")
            different += 1
        compared += 1
    for case, name, stored, found in published_differences():
        compared += 1
        if not close(stored, found, mpf("1e-9")):
            print(case, name, stored, mp.nstr(found, 17))
            different += 1
    print(f"{compared} compared, {different} different")
    return 1 if different or compared < 100 else 0


if __name__ == "__main__":
    if sys.argv[1:] not in (["write"], ["check"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
