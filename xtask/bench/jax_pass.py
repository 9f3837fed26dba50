"""One clipped logistic gradient pass in JAX, in closed form. Arguments: rows, columns, repeats."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from clock import repeat

rows, columns, repeats = map(int, sys.argv[1:4])
random = np.random.default_rng(1)
table = jnp.asarray(random.random((rows, columns), dtype=np.float32) * 2 - 1)
label = jnp.asarray((random.random(rows) < 0.5).astype(np.float32))
weight = jnp.asarray((random.random(columns, dtype=np.float32) - 0.5) / np.float32(columns**0.5))
norm = jnp.linalg.norm(table, axis=1)


@jax.jit
def gradient(weight):
    slope = jax.nn.sigmoid(table @ weight) - label
    return (slope * jnp.minimum(1, 0.1 / jnp.maximum(jnp.abs(slope) * norm, 1e-12))) @ table


repeat("JAX f32, each row clipped", lambda: gradient(weight).block_until_ready(), repeats, bytes=4 * rows * columns)
