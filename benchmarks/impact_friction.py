"""Friction of impacts under each form of Drake's law: figures of docs/which_model.md.

    python benchmarks/impact_friction.py [--steps 1e-3 1e-4] [--tosses FOLDER] [--json F]

block   a body of 10 kg that cannot turn lands at 1 m/s while it slides at 5 m/s, friction 0.4, on
        ground of Drake's default stiffness. Coulomb's law for what slides: the impulse of friction
        is μ times that of the normal force: the figure is their ratio over μ, least and most over
        landings that begin at different places between two steps.
go1     dropped from 0.3 m at 1 m/s sideways, all joints under PD: distance between its base after
        1 s and where it ends with a time step of 50 µs under the same law.
tosses  mean distance of a thrown cube from where it was measured, in % of its edge, over the
        held-out tosses of docs/reality.md; FOLDER: tosses_processed of contact-nets.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from engines import write_json

import contact_sim
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.reality import Candidate, TossExperiment, read_tosses, split
from contact_sim.robot import holding

LAWS = ('ncp', 'sap: similar', 'sap: sap', 'sap: lagged', 'sap: lagged, ahead')
"""Contact models, and the approximations of `sap`; `lagged` is the default of Drake, which does
not act ahead."""
MASS, FRICTION, SPEED, SLIDING = 10.0, 0.4, 1.0, 5.0
SECONDS = 0.02
"""From the beginning until the block is on the ground [s]."""
PHASES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Where between two steps the block would touch [-]."""
FINE = 5e-5
"""Time step that stands for the limit [s]."""
HEIGHT, DROP_SECONDS = 0.3, 1.0
TRAINING, TOSS_FRICTION = 30, 0.18
"""Tosses that docs/reality.md uses to fit, and its friction of laws at their defaults."""


def law_of(name: str) -> ContactModel:
    """Return a model by its name in LAWS."""
    model, _, form = name.partition(': ')
    form, ahead, _ = form.partition(', ahead')
    if not form:
        return as_contact_model(model)
    return contact_sim.Sap(approximation=form, acts_ahead=bool(ahead))


def block() -> contact_sim.RobotModel:
    """Return a body that slides along x and z, and does not turn."""
    model = pin.Model()
    x = model.addJoint(0, pin.JointModelPX(), pin.SE3.Identity(), 'x')
    z = model.addJoint(x, pin.JointModelPZ(), pin.SE3.Identity(), 'z')
    model.appendBodyToJoint(z, pin.Inertia(MASS, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    model.addBodyFrame('body', z, pin.SE3.Identity(), 0)
    point = contact_sim.ContactPoint('block', 'body', 'z', np.zeros(3), 0.0)
    return contact_sim.RobotModel.from_pinocchio(model, [point], (), name='block')


def friction_ratio(name: str, h: float, phase: float) -> float:
    """Return the impulse of friction over μ times that of the normal force in a landing [-].

    Args:
        name: one of LAWS.
        h: time step [s].
        phase: share of the first step after which the block would touch [-].
    """
    sim = contact_sim.Simulator(block(), law_of(name), friction=FRICTION, time_step=h)
    sim.reset([0.0, phase * h * SPEED], [SLIDING, -SPEED])
    normal = 0.0
    for _ in range(round(SECONDS / h)):
        normal += h * float(sim.step(()).contacts.normal_force[0])
    return MASS * (SLIDING - float(sim.v[0])) / (FRICTION * normal)


def drop_error(name: str, h: float, robot: contact_sim.RobotModel) -> float:
    """Return how far go1 ends from the limit in h after a drop [m]."""
    return float(np.linalg.norm(landing(name, h, robot) - landing(name, FINE, robot)))


def landing(name: str, h: float, robot: contact_sim.RobotModel) -> Any:
    """Return where the base is at the end of a drop [m], shape (3,)."""
    sim = contact_sim.Simulator(robot, law_of(name), friction=FRICTION, time_step=h)
    v = np.zeros(robot.nv)
    v[1] = SPEED
    sim.reset(v=v, height=HEIGHT)
    command = holding(robot.joint_positions(sim.q), *robot.default_gains)
    sim.follow(command, round(DROP_SECONDS / h))
    return sim.q[:3]


def toss_errors(folder: Path) -> dict[str, float]:
    """Return the mean error of the position under every law [% of the edge]."""
    experiment = TossExperiment(read_tosses(folder))
    count = len(experiment)
    held_out = split(count, TRAINING)[1] if count > TRAINING else range(count)
    position = [measure.name for measure in experiment.measures].index('position')
    means = {}
    for name in LAWS:
        law = Candidate(law_of(name), TOSS_FRICTION)
        means[name] = float(experiment.errors([law], held_out)[0, :, position].mean())
    return means


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument('--steps', type=float, nargs='+', default=[1e-3, 1e-4], metavar='S')
    parser.add_argument('--tosses', type=Path, metavar='FOLDER', help='measured tosses as well')
    parser.add_argument('--json', type=Path, metavar='F')
    options = parser.parse_args(arguments)
    robot = contact_sim.load_robot('go1')
    rows = []
    print(f'{"law":20}{"h ms":>7}{"friction over μ λ_n":>26}{"go1 off mm":>13}')
    for name in LAWS:
        for h in options.steps:
            ratios = [friction_ratio(name, h, phase) for phase in PHASES]
            off = drop_error(name, h, robot)
            row = {'law': name, 'time_step': h, 'least': min(ratios), 'most': max(ratios)}
            rows.append(row | {'go1_off': off})
            both = f'{row["least"]:.2f} to {row["most"]:.2f}'
            print(f'{name:20}{1e3 * h:7g}{both:>26}{1e3 * off:13.2f}')
    tosses = toss_errors(options.tosses) if options.tosses else {}
    for name, error in tosses.items():
        print(f'{name:20}{error:7.1f} % of the edge, mean over measured tosses of a cube')
    if options.json:
        write_json(options.json, {'rows': rows, 'tosses': tosses})
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
