"""3-vectors as tuples of floats: they stay in registers, so that kernels allocate nothing."""

from __future__ import annotations

from contact_sim.solvers._jit import kernel

ZERO = (0.0, 0.0, 0.0)


@kernel
def vec(a, i):
    """Return a[i], a[i + 1], a[i + 2]."""
    return a[i], a[i + 1], a[i + 2]


@kernel
def put(a, i, x):
    """Write x into a[i], a[i + 1], a[i + 2]."""
    a[i], a[i + 1], a[i + 2] = x


@kernel
def add(a, b):
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@kernel
def sub(a, b):
    """Return a − b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@kernel
def scaled(s, a):
    """Return s a."""
    return s * a[0], s * a[1], s * a[2]


@kernel
def dot(a, b):
    """Return a · b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a, b):
    """Return a × b."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@kernel
def rotated(x, y, z, a):
    """Return R a, R the matrix with the columns x, y, z."""
    return (
        x[0] * a[0] + y[0] * a[1] + z[0] * a[2],
        x[1] * a[0] + y[1] * a[1] + z[1] * a[2],
        x[2] * a[0] + y[2] * a[1] + z[2] * a[2],
    )


@kernel
def turned(c, s, x, y):
    """Return x and y turned about x × y by the angle with cosine c and sine s."""
    return add(scaled(c, x), scaled(s, y)), sub(scaled(c, y), scaled(s, x))


@kernel
def quaternion_axes(q, i):
    """Return the columns of the rotation of the quaternion q[i:i + 4], ordered x, y, z, w."""
    a, b, c, w = q[i], q[i + 1], q[i + 2], q[i + 3]
    aa, bb, cc = 2.0 * a * a, 2.0 * b * b, 2.0 * c * c
    ab, ac, bc = 2.0 * a * b, 2.0 * a * c, 2.0 * b * c
    aw, bw, cw = 2.0 * a * w, 2.0 * b * w, 2.0 * c * w
    x = (1.0 - bb - cc, ab + cw, ac - bw)
    y = (ab - cw, 1.0 - aa - cc, bc + aw)
    return x, y, (ac + bw, bc - aw, 1.0 - aa - bb)


@kernel
def inertia_times(inertia, a):
    """Return I a, I the entries xx, xy, xz, yy, yz, zz from 4 on of a row of `world_inertia`."""
    return (
        inertia[4] * a[0] + inertia[5] * a[1] + inertia[6] * a[2],
        inertia[5] * a[0] + inertia[7] * a[1] + inertia[8] * a[2],
        inertia[6] * a[0] + inertia[8] * a[1] + inertia[9] * a[2],
    )
