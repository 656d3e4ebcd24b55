"""null_space: hard stance of a set of feet that neither slide nor lift, whatever it takes.

    rows of held feet     w = G λ + u_f + b = 0,   λ of any sign and size
    all other feet        λ = 0                          (physics.md 2.5, E10, E12)

which is one step of the support-consistent dynamics: v⁺ = N_c v_f where b = 0. A foot enters
through the impulse transfer, the plastic impact of E12; restitution has no place here. Redundant
feet (solo8, stretched legs, four corners of a box) share the impulse with least norm.

Which feet are held is detected, or given by name or index. Detected feet enter when they would
sink in, or earlier, `touch_gap` over the ground; there they are held at their height. With
`release` they leave when the ground would have to pull with more than `release_force`, and come
back when they sink in, or by `touch_gap` once they have been above it.

The law has neither a cone nor a sign, so its answer may be one that no ground can give. Every
step says so in its status: the stance pulls on the ground, leaves the friction cone, or lets a
foot that is not given sink in. The equations are solved all the same (`converged`), the status is
not `physical`. While it is, the motion is that of ncp.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.solution import (
    CONVERGED,
    NONFINITE,
    OUTSIDE_CONE,
    PULLING,
    SINKING,
)
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.contact_models.cone_law import solve_cones
from contact_sim.contact_models.law import Law
from contact_sim.contact_models.protocol import Stepper
from contact_sim.contact_models.time_stepping import TimeStepping
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.parameters import Parameters, parameter
from contact_sim.solvers.bilateral import least_norm
from contact_sim.solvers.jit import kernel

FREE_FOOT, ABOVE, TOUCHED, RELEASED = 0.0, 1.0, 2.0, 3.0
"""State of a foot in slot STATE of the contact's memory: not held, held at its height over the
ground, held on the ground, let go and not yet clear of it."""
GIVEN = 8.0
"""Added to the state where the foot is in the given set."""
STATE = 3
TOLERANCE, MAX_SWEEPS, MAX_ADMM_ITERATIONS = 1e-10, 50, 1000
SLACK = 1e-9
"""Share of the largest impulse within which a foot neither pulls nor leaves its cone."""


@dataclass(frozen=True)
class NullSpaceParameters(Parameters):
    """Which feet are held, and how."""

    support: str = parameter(
        'detected', '', 'detected: feet that touch the ground; given: those in `feet`',
        choices=('detected', 'given'), live=True,
    )  # fmt: skip
    feet: tuple[str, ...] = parameter(
        (), '', 'names or indices of the feet held under support: given; empty: none', live=True
    )
    touch_gap: float = parameter(
        0.0, 'm', 'gap within which a detected foot is held before it sinks in', at_least=0.0,
        at_most=0.1, live=True,
    )  # fmt: skip
    release: bool = parameter(
        False, '', 'let go of a foot that the ground would have to pull', live=True
    )
    release_force: float = parameter(
        0.0, 'N', 'pull that a foot bears before it is released', at_least=0.0, live=True
    )
    stabilisation: str = parameter(
        'baumgarte', '', 'baumgarte: contact.baumgarte corrects gaps; velocity: drift stays',
        choices=('baumgarte', 'velocity'), live=True,
    )  # fmt: skip


class NullSpace(Law):
    """The stance model.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'null_space'
    parameter_class: ClassVar[type[Parameters]] = NullSpaceParameters

    def __init__(self, **parameters: object) -> None:
        feet = parameters.get('feet', ())
        if isinstance(feet, Iterable) and not isinstance(feet, str):
            parameters['feet'] = tuple(
                str(foot) if hasattr(foot, '__index__') else foot for foot in feet
            )
        self.parameters: NullSpaceParameters = NullSpaceParameters(**parameters)  # type: ignore[arg-type]

    @property
    def remembers(self) -> bool:
        """The support set outlasts the step."""
        return True

    @property
    def margin(self) -> float:
        """Every foot takes part: a held one is held at any gap, a free one may enter."""
        return np.inf

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, 0): feet enter when they would close."""
        return h, 0.0

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law.

        Raises:
            UnknownName: a given foot that the robot does not have.
        """
        p = self.parameters
        given = given_feet(workspace.spheres.name, p.feet) if p.support == 'given' else None
        return StanceStepping(workspace, self, given)

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Fill `rows.impulse` in place; return (status code, iterations, residual)."""
        p = self.parameters
        return solve_stance(  # type: ignore[no-any-return]
            rows.delassus, rows.g, rows.free_velocity, rows.friction, rows.gap, rows.lower,
            rows.upper, rows.impulse, rows.memory, rows.memory_next, rows.nc, rows.n,
            p.support == 'given', p.touch_gap, p.stabilisation == 'baumgarte', p.release,
            p.release_force * rows.time_step,
        )  # fmt: skip


def given_feet(names: tuple[str, ...], feet: tuple[str, ...]) -> NDArray[np.float64]:
    """Return GIVEN for every foot of `names` that `feet` lists by name or index, else 0.

    Raises:
        UnknownName: a foot that does not exist.
        InvalidInput: a foot listed twice.
    """
    given = np.zeros(len(names))
    for foot in feet:
        index = names.index(foot) if foot in names else int(foot) if foot.isdecimal() else -1
        if not 0 <= index < len(names):
            raise UnknownName('foot in NullSpaceParameters.feet', foot, names)
        if given[index]:
            raise InvalidInput(f'NullSpaceParameters.feet: {names[index]} is listed twice')
        given[index] = GIVEN
    return given


class StanceStepping(TimeStepping):
    """The common step without restitution, told before every step which feet are given."""

    def __init__(
        self, workspace: Workspace, law: NullSpace, given: NDArray[np.float64] | None
    ) -> None:
        super().__init__(workspace, law)
        self._given = given

    def advance(self) -> bool:
        """Advance the state by h; return False, with q and v as before, if it is not finite."""
        if self._given is not None:
            state = self._workspace.record.memory[:, STATE]
            np.mod(state, GIVEN, out=state)
            state += self._given
        return super().advance()

    def _solve(self, restitution_scale: float) -> bool:
        return super()._solve(0.0)

    def _guard_energy(self) -> bool:
        return True  # without restitution an impact cannot create energy


@kernel
def initial_state(i, given, gap, closing, memory, touch_gap):
    """Return the state of foot `i` at the start of the step."""
    command = memory[i, STATE] >= GIVEN
    state = memory[i, STATE] - (GIVEN if command else 0.0)
    if given:
        if not command:
            return FREE_FOOT
        if state == RELEASED:
            return TOUCHED if closing else RELEASED
        return TOUCHED if closing or state == TOUCHED else ABOVE
    if closing or state == TOUCHED:
        return TOUCHED
    if state == ABOVE:
        return ABOVE
    if touch_gap > 0.0 and gap[i] <= touch_gap:
        return RELEASED if state == RELEASED else ABOVE
    return FREE_FOOT


@kernel
def hold(G, u_free, bias, state, old, baumgarte, lower, upper, nc, impulse):
    """Fill `impulse` so that held feet stay, or arrive; return (status code, iterations).

    Rows that cannot move at all (G_rr = 0) take no impulse.
    """
    n = u_free.shape[0]
    ns = n - 3 * nc
    row, target, m, largest = np.empty(n, np.int64), np.empty(n), 0, 0.0
    for r in range(3 * nc):
        largest = max(largest, G[r, r])
    for i in range(nc):
        stays = state[i] == TOUCHED and (baumgarte or old[i] != TOUCHED)
        for r in range(3 * i, 3 * i + 3):
            held = (state[i] == TOUCHED or state[i] == ABOVE) and G[r, r] > 1e-12 * largest
            if held:
                row[m], target[m] = r, u_free[r] + (bias[r] if stays else 0.0)
                m += 1
            else:
                impulse[r] = 0.0
    for k in range(ns):
        row[m + k], target[m + k] = 3 * nc + k, u_free[3 * nc + k] + bias[3 * nc + k]
    A = np.empty((m + ns, m + ns))
    for a in range(m + ns):
        for b in range(m + ns):
            A[a, b] = G[row[a], row[b]]
    code, iterations = CONVERGED, 0
    if ns > 0:
        code, iterations = choose_joint_friction(
            A, target[: m + ns], lower, upper, m, row, impulse
        )
        for a in range(m):
            for k in range(ns):
                target[a] += A[a, m + k] * impulse[3 * nc + k]
    x = np.empty(m)
    least_norm(A[:m, :m].copy(), target[:m], x)
    for a in range(m):
        impulse[row[a]] = x[a]
    return code, iterations


@kernel
def choose_joint_friction(A, target, lower, upper, m, row, impulse):
    """Solve held rows and boxes together and keep the boxes; as `solve_cones` without cones."""
    size = A.shape[0]
    low, high, x = np.empty(size), np.empty(size), np.empty(size)
    low[:m], high[:m] = -np.inf, np.inf
    low[m:], high[m:] = lower[: size - m], upper[: size - m]
    for a in range(size):
        x[a] = impulse[row[a]]
    code, iterations, _ = solve_cones(
        A.copy().reshape(size * size), target, np.empty(0), low, high, x, 0, size, TOLERANCE,
        MAX_SWEEPS, MAX_ADMM_ITERATIONS, 1.0,
    )  # fmt: skip
    for k in range(size - m):
        impulse[row[m + k]] = x[m + k]
    return code, iterations


@kernel
def change_support(w, state, released, given, release, pull, impulse, slack):
    """Take in feet that sink, else let go of the one pulled most; return whether any changed."""
    changed, worst, worst_impulse = False, -1, -pull - slack[1]
    for i in range(state.shape[0]):
        held = state[i] == TOUCHED or state[i] == ABOVE
        if not held and not given and w[3 * i + 2] < -slack[0]:
            state[i], changed = TOUCHED, True
        elif held and release and not released[i] and impulse[3 * i + 2] < worst_impulse:
            worst, worst_impulse = i, impulse[3 * i + 2]
    if not changed and worst >= 0:
        state[worst], released[worst], changed = RELEASED, True, True
    return changed


@kernel
def verdict(w, state, mu, impulse, slack):
    """Return whether the stance is physical, as a status code."""
    code = CONVERGED
    for i in range(state.shape[0]):
        r = 3 * i
        if state[i] != TOUCHED and state[i] != ABOVE:
            if w[r + 2] < -slack[0] and code != PULLING:
                code = SINKING
        elif impulse[r + 2] < -slack[1]:
            code = PULLING
        elif code == CONVERGED:
            tangential = np.sqrt(impulse[r] ** 2 + impulse[r + 1] ** 2)
            if tangential > mu[i] * impulse[r + 2] + slack[1]:
                code = OUTSIDE_CONE
    return code


@kernel
def solve_stance(
    delassus, g, free_velocity, mu, gap, lower, upper, impulse, memory, memory_next, nc, n, given,
    touch_gap, baumgarte, release, pull,
):  # fmt: skip
    """Solve the first `nc` contacts and `n` rows in place.

    Args are those of `ContactRows` and `NullSpaceParameters`; `pull` is the largest pull that a
    foot bears before it is released [N s]. Returns (status code, iterations, residual [N s]).
    """
    G, u_free, impulse = delassus[: n * n].reshape(n, n), free_velocity[:n], impulse[:n]
    if not np.isfinite(g[:n]).all():
        impulse[:] = 0.0
        return NONFINITE, 0, np.inf
    bias = g[:n] - u_free
    state, old, released = np.empty(nc), np.empty(nc), np.zeros(nc, np.bool_)
    for i in range(nc):
        old[i] = memory[i, STATE] % GIVEN
        state[i] = initial_state(i, given, gap, g[3 * i + 2] < 0.0, memory, touch_gap)
    code, total, rounds, slack = CONVERGED, 0, 0, np.zeros(2)
    w = g[:n].copy()
    for _ in range(3 * nc + 1):
        code, iterations = hold(G, u_free, bias, state, old, baumgarte, lower, upper, nc, impulse)
        total, rounds = total + iterations, rounds + 1
        w = g[:n] + np.dot(G, impulse)
        slack[0] = 1e-12 * np.abs(g[:n]).max()
        slack[1] = SLACK * np.abs(impulse[: 3 * nc]).max() if nc > 0 else 0.0
        if not change_support(w, state, released, given, release, pull, impulse, slack):
            break
    residual = 0.0
    for i in range(nc):
        memory_next[i, :STATE] = 0.0
        memory_next[i, STATE] = state[i]
        if state[i] == TOUCHED and (baumgarte or old[i] != TOUCHED):
            for r in range(3 * i, 3 * i + 3):
                residual = max(residual, abs(w[r]) / G[r, r] if G[r, r] > 0.0 else 0.0)
    physical = verdict(w, state, mu, impulse, slack)
    return (physical if code == CONVERGED else code), total + rounds, residual
