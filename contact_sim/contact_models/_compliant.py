"""Compliant contact: springs and dampers, and regularised friction.

Normal force, x = −φ penetration, ẋ = −u_n (theory 2.1, T10):

    linear          k x₊
    kelvin_voigt    (k x + d ẋ)₊ for x > 0,   d = 2 ζ √(k/G_nn)
    unclamped       the same without ()₊: pulls when the body leaves
    hunt_crossley   k x₊^p (1 + a ẋ)₊

Friction −μ(s) f_n û with s = |u_t|, regularised below v_s:

    piecewise       μ min(s/v_s, 1)
    tanh            μ tanh(s/v_s)
    stribeck        rises as μ_s x (2 − x), x = s/v_s, and falls smoothly to μ from v_s to 3 v_s
    anchored        −(k_t z + d_t u_t), cut at μ f_n;   ż = u_t while it holds

`anchored` is true stiction (E9): a spring and damper to an anchor that is set at touch-down, where
z = 0, rolls along with the contact point, and is dragged so that k_t |z| = μ f_n once the force is
cut. The deflection z is the model's memory of the contact, and whether the step needed G.

`implicit` evaluates the force at the end of the step, x⁺ = −(φ + h u_n⁺), by Newton on
λ = h f(u_f + G λ): stable at any stiffness. `explicit` evaluates it at the start: the textbook
law, which gains energy once the `stiffness_ratio` of the step report exceeds 2, and regularised
friction long before.

A stiffness of 0 is sized from `penetration` under the robot's weight, a tangential one of
0 is that of the normal spring (its secant at `penetration`).

[Hunt & Crossley 1975], [Armstrong-Hélouvry 1994].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim._types import Array
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import integers, matrix, square, vector
from contact_sim.collision._surface import FACETED
from contact_sim.contact_models._base import Stepper, TimeSteppingModel
from contact_sim.contact_models._soft_contact import has_short_tree
from contact_sim.contact_models._stages import (
    CompiledLaw,
    compiled_law,
    fill_delassus,
    next_island_rows,
    report_solve,
)
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter, relative_tolerance
from contact_sim.solvers._cone_problem import CONVERGED, UNSTABLE, fill_velocity
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._springs import (
    ANCHORED,
    HUNT_CROSSLEY,
    LINEAR,
    TANGENTIAL_STIFFNESS,
    TREE_STEPS,
    LinearSprings,
    Springs,
    fill_forces,
    fill_stiffness,
    next_deflection,
    solve_implicit_springs,
    solve_springs_without_delassus,
    stiffness_ratio,
)
from contact_sim.step._contact_rows import spring_work_of, unbiased_rows_of
from contact_sim.step._inertia import fill_delassus_diagonal
from contact_sim.step._problem import ContactProblem, ContactSolution
from contact_sim.step._workspace import Workspace

# in the order of the codes in solvers/_springs.py
NORMAL_LAWS = ('linear', 'kelvin_voigt', 'unclamped', 'hunt_crossley')
FRICTION_LAWS = ('piecewise', 'tanh', 'stribeck', 'anchored')
(NORMAL_LAW, FRICTION_LAW, IMPLICIT, TOLERANCE, ITERATION_LIMIT, MATERIAL) = range(6)
NEEDS_NO_DELASSUS = 3
"""Slot of the memory: 1 where the step was solved without G, or could have been."""
SMALL_MOTIONS = 14
"""Places in the numbers of the law: parameters, the material and `LinearSprings`."""


@dataclass(frozen=True)
class CompliantParameters(Parameters):
    """Material of the ground."""

    normal_law: str = parameter(
        'hunt_crossley', '', 'law of the normal force', choices=NORMAL_LAWS, live=True
    )
    friction_law: str = parameter(
        'anchored', '', 'law of the friction force', choices=FRICTION_LAWS, live=True
    )
    stiffness: float = parameter(
        0.0, 'N/m^p', 'k of every contact point; 0: from `penetration`', at_least=0.0, live=True
    )
    penetration: float = parameter(
        1e-3, 'm', 'depth wanted when all contact points share the weight', at_least=1e-9,
        live=True,
    )  # fmt: skip
    exponent: float = parameter(
        1.5, '-', 'p of hunt_crossley; 1.5: Hertz', at_least=1.0, at_most=3.0, live=True
    )
    dissipation: float = parameter(
        50.0, 's/m', 'a of hunt_crossley; rebound is never faster than 1/a', at_least=0.0,
        live=True,
    )  # fmt: skip
    damping_ratio: float = parameter(
        0.5, '-', 'zeta of kelvin_voigt and unclamped', at_least=0.0, live=True
    )
    slip_speed: float = parameter(
        1e-3, 'm/s', 'v_s below which friction is regularised', at_least=1e-12, live=True
    )
    static_ratio: float = parameter(
        1.0, '-', 'static over dynamic friction, for stribeck', at_least=1.0, at_most=10.0,
        live=True,
    )  # fmt: skip
    tangential_stiffness: float = parameter(
        0.0, 'N/m', 'k_t of anchored; 0: as stiff as the normal spring', at_least=0.0, live=True
    )
    tangential_damping_ratio: float = parameter(
        1.0, '-', 'zeta of the damper of anchored', at_least=0.0, live=True
    )
    integration: str = parameter(
        'implicit', '', 'when the force is evaluated: end or start of the step',
        choices=('implicit', 'explicit'), live=True,
    )  # fmt: skip
    tolerance: float = relative_tolerance(1e-9, 'force residual relative to the largest impulse')
    max_iterations: int = parameter(
        500, '-', 'Newton iterations and their halvings', at_least=1, at_most=100000, live=True
    )


@kernel
def next_compliant(data):
    """Gather the next contact problem."""
    n = next_island_rows(data)
    if n == 0:
        return n
    if defers_delassus(data):
        fill_damped_diagonal(data, n)
    else:
        fill_delassus(data, n, False)
    return n


@kernel
def fill_damped_diagonal(data, n):
    """Fill the diagonal of G in the rows whose dampers read it, reference values in the others."""
    contacts, damped = 3 * integers(data, f.COUNTS)[0], 3 * integers(data, f.COUNTS)[0]
    lower, upper = vector(data, f.ROW_LOWER), vector(data, f.ROW_UPPER)
    for k in range(n - contacts):
        if np.isinf(lower[k]) or np.isinf(upper[k]):  # not dry friction
            damped = contacts + k + 1
    fill_delassus_diagonal(data, n, damped)
    G, weight = square(data, f.DELASSUS, n), vector(data, f.ROW_WEIGHT)
    for r in range(damped, n):
        G[r, r] = weight[r]


@kernel
def defers_delassus(data):
    """Return whether the problem is tried without G, as the contacts remember."""
    law, memory = vector(data, f.LAW), matrix(data, f.ROW_MEMORY)
    tried = law[IMPLICIT] != 0.0 and law[FRICTION_LAW] == ANCHORED
    for i in range(integers(data, f.COUNTS)[0]):
        tried &= memory[i, NEEDS_NO_DELASSUS] != 0.0
    return tried and has_short_tree(data)


@kernel
def solve_compliant(data):
    """Fill the impulses of springs and dampers at the end, or at the start, of the step."""
    law, n, h = vector(data, f.LAW), integers(data, f.COUNTS)[1], vector(data, f.TIME_STEP)[0]
    rows, impulse = unbiased_rows_of(data), vector(data, f.ROW_IMPULSE)[:n]
    nc, start = rows.friction.shape[0], vector(data, f.ROW_START)[:n]
    gaps = (vector(data, f.ROW_GAP), vector(data, f.ROW_INTERVAL_GAP))
    memory, implicit = matrix(data, f.ROW_MEMORY)[:nc], law[IMPLICIT] != 0.0
    material = law[MATERIAL:SMALL_MOTIONS]
    springs = Springs(
        int(law[NORMAL_LAW]), int(law[FRICTION_LAW]), material, h, h if implicit else 0.0
    )
    work, solved, limits = spring_work_of(data), False, (law[TOLERANCE], int(law[ITERATION_LIMIT]))
    tried = defers_delassus(data)
    if tried:
        count, error, solved = solve_springs_without_delassus(
            rows, springs, start, gaps, memory, impulse, work, limits
        )
        outcome = CONVERGED, count, error
        if not solved:
            fill_delassus(data, n, False)
    # Newton on λ = h f(u_f + G λ) at the end of the step, or λ = h f(u⁻) at its start, where
    # springs explode if h ω > 2, ω² = λ_max of k G
    if implicit and not solved:
        outcome = solve_implicit_springs(rows, springs, start, gaps, memory, impulse, work, limits)
    elif not implicit:
        fill_forces(rows, springs, start, gaps, memory, work, False)
        assign(impulse, work.force)
        s = law[SMALL_MOTIONS:]
        linear = LinearSprings(s[0], s[1], s[2], s[3], s[4])
        ratio = stiffness_ratio(rows.delassus, nc, h, linear)
        outcome = (UNSTABLE if ratio > 2.0 else CONVERGED), 1, 0.0
    # u⁺ = G λ + u_f moves the anchors: ż = u_t while they hold, k_t |z| = μ f_n once they slide
    if springs.friction_law == ANCHORED:
        if not solved:
            fill_velocity(rows, impulse, work.velocity)
        next_deflection(
            work.velocity, rows.friction, impulse, h, material[TANGENTIAL_STIFFNESS], memory,
            matrix(data, f.ROW_MEMORY_NEXT)[:nc],
        )  # fmt: skip
        few = outcome[0] == CONVERGED and outcome[1] <= TREE_STEPS and not tried
        needs_none = solved or (few and fill_stiffness(rows.delassus, nc, work))
        for i in range(nc):
            matrix(data, f.ROW_MEMORY_NEXT)[i, NEEDS_NO_DELASSUS] = 1.0 if needs_none else 0.0
    report_solve(data, outcome)


class Compliant(TimeSteppingModel):
    """Spring-damper contact with regularised friction.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'compliant'
    parameter_class: ClassVar[type[Parameters]] = CompliantParameters
    compiled: CompiledLaw = compiled_law(solve_compliant, next_problem=next_compliant)
    freezes_rolling = True  # Newton on springs does not bear the compliance that turns it

    def __init__(self, **parameters: float | str) -> None:
        self.parameters: CompliantParameters = CompliantParameters(**parameters)  # type: ignore[arg-type]
        # the deflection of the anchor [m] is the memory
        self.has_memory = self.parameters.friction_law == FRICTION_LAWS[ANCHORED]

    def sized(self, workspace: Workspace) -> Compliant:
        """Return the model with the stiffness for `penetration` under the weight of the robot."""
        p = self.parameters
        if p.stiffness > 0.0:
            return self
        weight = float(np.linalg.norm(workspace.data.gravity) * workspace.total_mass[0])
        robot, sizes = workspace.robot, workspace.sizes
        points = len(robot.contact_points) or len(robot.body_points)  # feet, if any, carry it
        at_once = (
            1 if workspace.ground[0] in FACETED else max(sizes.features, 1)
        )  # one facet, mostly
        share = weight / max(at_once * points, 1)
        if share == 0.0:
            return self
        stiffness = share / p.penetration**self._power
        return Compliant(**{**vars(p), 'stiffness': stiffness})

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law, sized for the robot if no stiffness is given."""
        law = self.sized(workspace)
        workspace.data.springs[:] = law.small_motions
        return super(Compliant, law).bind(workspace)

    @property
    def _power(self) -> float:
        """Exponent of the penetration in the normal force."""
        p = self.parameters
        return p.exponent if p.normal_law == NORMAL_LAWS[HUNT_CROSSLEY] else 1.0

    @property
    def secant_stiffness(self) -> float:
        """Normal force over depth at `penetration` [N/m]; zero while unsized."""
        p = self.parameters
        return float(p.stiffness * p.penetration ** (self._power - 1.0))

    @property
    def small_motions(self) -> LinearSprings:
        """Springs and dampers for small motions about the depth `penetration`."""
        p, secant = self.parameters, self.secant_stiffness
        anchored = p.friction_law == FRICTION_LAWS[ANCHORED]
        along = (p.tangential_stiffness or secant) if anchored else 0.0
        stiffness = self._power * secant
        if p.normal_law == NORMAL_LAWS[HUNT_CROSSLEY]:
            damping = p.dissipation * secant * p.penetration
            return LinearSprings(stiffness, 0.0, damping, along, p.tangential_damping_ratio)
        ratio = 0.0 if p.normal_law == NORMAL_LAWS[LINEAR] else p.damping_ratio
        return LinearSprings(stiffness, ratio, 0.0, along, p.tangential_damping_ratio)

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, 0): a force may start within the step, not before contact."""
        return (h if self.parameters.integration == 'implicit' else 0.0), 0.0

    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that solve `problem`, starting from `guess` [N s].

        Raises:
            InvalidInput: no stiffness was given, and there is no robot to size it for.
        """
        if self.parameters.stiffness == 0.0:
            raise InvalidInput(
                'CompliantParameters.stiffness = 0: give one; only a Simulator can size it'
            )
        return super().solve(problem, guess)

    def law_numbers(self) -> tuple[float, ...]:
        """Return codes and numerics, then material and linear springs of solvers/_springs.py."""
        p, secant = self.parameters, self.secant_stiffness
        return (
            float(NORMAL_LAWS.index(p.normal_law)), float(FRICTION_LAWS.index(p.friction_law)),
            float(p.integration == 'implicit'), p.tolerance, float(p.max_iterations),
            p.stiffness, p.exponent, p.dissipation, p.damping_ratio, p.slip_speed,
            p.static_ratio, p.tangential_stiffness or secant, p.tangential_damping_ratio, secant,
            *self.small_motions,
        )  # fmt: skip
