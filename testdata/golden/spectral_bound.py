"""Least integer not below the largest eigenvalue of G = Q^T Q, by integer arithmetic: s > lambda_max iff all leading minors of s I - G
are positive (Bareiss elimination in Python integers); bisection over integers s. No floating point in the answer."""
import json, os, random

def gram(Q, d):
    G = [[0] * d for _ in range(d)]
    for r in Q:
        for i in range(d):
            if r[i]:
                for j in range(d):
                    G[i][j] += r[i] * r[j]
    return G

def above(G, s):
    d = len(G)
    A = [[(s if i == j else 0) - G[i][j] for j in range(d)] for i in range(d)]
    prev = 1
    for k in range(d):
        if A[k][k] <= 0:
            return False
        for i in range(k + 1, d):
            for j in range(k + 1, d):
                A[i][j] = (A[i][j] * A[k][k] - A[i][k] * A[k][j]) // prev
        prev = A[k][k]
    return True

def least_integer(Q, d):
    G = gram(Q, d)
    lo, hi = 0, sum(G[i][i] for i in range(d)) + 1      # not above lo (or zero matrix), above hi
    while hi - lo > 1:
        m = (lo + hi) // 2
        lo, hi = (lo, m) if above(G, m) else (m, hi)
    # lambda in [lo, lo + 1): lo itself unless lambda passes it by more than 2^-60.
    fine = [[v << 60 for v in row] for row in G]
    return lo if above(fine, (lo << 60) + 1) else lo + 1

random.seed(20); cases = []
def add(name, Q):
    d = len(Q[0])
    assert all(sum(v * v for v in r) <= 2**40 for r in Q), name
    cases.append(dict(name=name, columns=d, values=[v for r in Q for v in r], least=least_integer(Q, d)))
T = 2**20
rnd = lambda n, d, a: [[random.randint(-a, a) for _ in range(d)] for _ in range(n)]
add("one number", [[T]]); add("ones", [[1] * 4] * 9); add("identity", [[1 if i == j else 0 for j in range(6)] for i in range(6)])
add("scaled identity, all eigenvalues equal", [[T if i == j else 0 for j in range(8)] for i in range(8)])
add("rank one, longest rows", [[T // 3] * 9] * 7); add("rank one, mixed signs", [[(-1) ** (i + j) * 300000 for j in range(10)] for i in range(12)])
add("graded", [[T >> (3 * i) if i == j else 0 for j in range(7)] for i in range(7)])
add("nearly equal eigenvalues", [[T - i if i == j else 0 for j in range(8)] for i in range(8)])
add("top eigenvector orthogonal to ones", [[700000, -700000, 0], [1, 1, 1], [1, 1, 1]])
add("top eigenvector with sum zero", [[500000, -500000, 500000, -500000]] * 5 + [[1000] * 4] * 50)
add("one long row among short ones", [[3, -2, 1, 0, 5]] * 20 + [[0, 0, T, 0, 0]])
add("hidden direction", [[900000, 0, 0, 0, 0]] * 3 + [[0, 0, 0, 0, 900001]] * 3)
for n, d, a in [(3, 3, 3), (5, 4, 10), (20, 5, 1000), (30, 8, 100000), (40, 12, 250000), (60, 10, 300000), (12, 12, 300000), (100, 6, 400000), (9, 2, 700000)]:
    add(f"uniform {n} x {d} up to {a}", rnd(n, d, a))
add("hilbert", [[T // (2 * (i + j + 1)) for j in range(8)] for i in range(8)])
add("with an intercept", [[400000] + [random.randint(-250000, 250000) for _ in range(7)] for _ in range(40)])
add("one-hot beside an intercept", [[900000 if j == i * i % 7 else (400000 if j == 7 else 0) for j in range(8)] for i in range(35)])
add("two clusters", [[random.randint(390000, 400000) * (1 if i % 2 else -1) for _ in range(6)] for i in range(30)])
add("close pair", [[741455, 741455], [741455, -741455], [1, 0]])

json.dump(dict(source="spectral_bound.py, Python integers", cases=cases), open(os.path.splitext(os.path.abspath(__file__))[0] + ".json", "w"))
print(len(cases), [(c["name"], c["least"]) for c in cases][:4])
