"""ncp against Pinocchio 4's own constraint solvers on problems recorded from a simulation."""

import numpy as np
import pinocchio as pin
import pytest
from robots import stand

from contact_sim import Ncp, Simulator, load_robot

pytestmark = pytest.mark.skipif(
    not hasattr(pin, 'ADMMConstraintSolver'), reason='Pinocchio before 4 has other solvers'
)


def recorded_problems(name):
    """Problems of a robot that lands obliquely and slides: stick, slip and open contacts."""
    sim = Simulator(load_robot(name), friction=0.5)
    q, v = sim.q.copy(), np.zeros(sim.robot.nv)
    q[2] += 5e-3
    v[:2] = 1.0, 0.4
    sim.reset(q, v)
    reports = stand(sim, 200)
    return [report.problem for report in reports if report.problem.n_contacts][::10]


def solve_with_pinocchio(problem, solver):
    """Return impulses of Pinocchio; its contact models serve as cones only."""
    model = pin.buildSampleModelManipulator()
    models, data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for mu in problem.friction:
        contact = pin.PointContactConstraintModel(
            model, 0, pin.SE3.Identity(), 1, pin.SE3.Identity()
        )
        contact.setFriction(mu)  # before wrapping: the wrapper copies
        models.append(pin.ConstraintModel(contact))
    for wrapped in models:
        data.append(wrapped.createData())
    n = problem.n_rows
    if solver == 'admm':
        kind, settings, result = (
            pin.ADMMConstraintSolver, pin.ADMMSolverSettings(), pin.ADMMSolverResult()
        )  # fmt: skip
    else:
        kind, settings, result = (
            pin.PGSConstraintSolver, pin.PGSSolverSettings(), pin.PGSSolverResult()
        )  # fmt: skip
    settings.max_iterations = 100000
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = 1e-13
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 1e-14
    settings.solve_ncp = True
    operator = pin.DelassusOperatorDense(problem.delassus)
    kind(n).solve(operator, problem.g, models, data, settings, result)
    return np.array(result.retrieveConstraintImpulses())


@pytest.mark.parametrize('solver', ['admm', 'pgs'])
@pytest.mark.parametrize('name', ['anymal_b', 'solo12', 'a1'])
def test_next_velocity_equals_pinocchio(name, solver):
    problems = recorded_problems(name)
    assert len(problems) >= 10
    for problem in problems:
        ours = Ncp(tolerance=1e-12).solve(problem)
        theirs = solve_with_pinocchio(problem, solver)
        u, v = (problem.delassus @ x + problem.free_velocity for x in (ours.impulse, theirs))
        assert ours.solver.converged
        assert np.abs(u - v).max() <= 1e-8
