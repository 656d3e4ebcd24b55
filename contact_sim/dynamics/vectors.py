"""3-vectors as tuples of floats: they live in registers, so that kernels allocate nothing."""

from __future__ import annotations

from contact_sim.solvers.jit import kernel

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
def symmetric_product(xx, xy, xz, yy, yz, zz, a):
    """Return the symmetric matrix with these entries times a."""
    return (
        xx * a[0] + xy * a[1] + xz * a[2],
        xy * a[0] + yy * a[1] + yz * a[2],
        xz * a[0] + yz * a[1] + zz * a[2],
    )


@kernel
def momentum(inertia, linear, angular):
    """Return the linear momentum, and the angular momentum about a point, of a moving inertia.

    Args:
        inertia: mass, first moment m c and inertia about the point (xx, xy, xz, yy, yz, zz),
            c from the point, shape (10,).
        linear: velocity at the point, a tuple.
        angular: angular velocity, a tuple.
    """
    mc = vec(inertia, 1)
    spin = symmetric_product(
        inertia[4], inertia[5], inertia[6], inertia[7], inertia[8], inertia[9], angular
    )
    return sub(scaled(inertia[0], linear), cross(mc, angular)), add(spin, cross(mc, linear))
