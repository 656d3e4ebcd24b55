r"""
Judge: an engine of springs, scored
===================================

A simulator of thirty lines: Pinocchio has the dynamics, each foot has a spring and a damper along
the normal, and friction that needs speed. How well does it keep the laws of contact?
``contact_sim.judge`` scores its steps by the same residuals as our own. What must come out:

* At rest the four feet sink by :math:`\sum \phi_i = -m g/k`.
* A foot that carries :math:`f_t` along the ground moves with :math:`v_s f_t/(\mu f_n)`.
* The forces explain the motion: the momentum balances, to the error of its integrator.
"""

import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin

from contact_sim import Simulator, load_robot
from contact_sim.judge import StepCollector, StepContact, from_reports, judge

H, GRAVITY, FRICTION, SLIP_SPEED, SECONDS = 1e-3, 9.81, 0.8, 0.1, 1.5

# %%
# The engine. Explicit forces at the start of a step, then semi-implicit Euler. Each step goes to
# a ``StepCollector``: the state after it, the efforts, and of each foot point, normal, gap, force.

robot = load_robot('go1', body_contacts=False).with_actuators(dry_friction=0.0)
model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
start = Simulator(robot).standing_configuration()
(stiffness, damping), pose = robot.default_gains, robot.joint_positions(start)


def hold(q, v):
    """Joint PD about the standing pose."""
    return stiffness * (pose - robot.joint_positions(q)) - damping * robot.joint_velocities(v)


def penalty_engine(k, d=60.0):
    """Steps of the robot on springs k [N/m] and dampers d [N s/m]."""
    q, v = start.copy(), np.zeros(robot.nv)
    steps = StepCollector(robot, f'springs of {k:.0e} N/m', 0.0, q, v)
    for _ in range(round(SECONDS / H)):
        inertia = pin.crba(model, data, q)
        inertia = np.triu(inertia) + np.triu(inertia, 1).T
        effort = hold(q, v)
        push = robot.selection_matrix.T @ effort - pin.nonLinearEffects(model, data, q, v)
        pin.computeJointJacobians(model, data, q)
        feet = []
        for foot in robot.contact_points:
            joint = model.getJointId(foot.joint)
            point = data.oMi[joint].act(foot.offset) - [0.0, 0.0, foot.radius]
            J = pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)
            J = J[:3] - pin.skew(point - data.oMi[joint].translation) @ J[3:]
            speed = J @ v
            normal = max(-k * point[2] - d * speed[2], 0.0) if point[2] < 0.0 else 0.0
            slip = max(np.hypot(*speed[:2]), SLIP_SPEED)
            force = normal * np.array([*(-FRICTION * speed[:2] / slip), 1.0])
            push += J.T @ force
            feet.append(StepContact(foot.joint, point, [0.0, 0.0, 1.0], point[2], force, FRICTION))
        v = v + H * np.linalg.solve(inertia, push - robot.joint_damping * v)
        q = pin.integrate(model, q, H * v)
        steps.add(q, v, effort, feet, H)
    return steps.steps()


# %%
# Two stiffnesses, and ``ncp`` in our simulator under the same controller.

sim = Simulator(robot, 'ncp', friction=FRICTION, time_step=H)
reports = [sim.step(hold(sim.q, sim.v)) for _ in range(round(SECONDS / H))]
runs = {'ncp': from_reports(robot, reports)}
runs |= {f'k = {k:.0e} N/m': penalty_engine(k) for k in (1e4, 5e4)}
scores = {name: judge(robot, steps) for name, steps in runs.items()}
print(scores['k = 1e+04 N/m'].table())

# %%
# The depth is the weight over the stiffness, and the creep is what friction asks for. The momentum
# shows the integrator. It adds accelerations to the velocity of the base in the axes of the body,
# which turn during the step: an error of h², largest while the robot sinks in and turns.

for k in (1e4, 5e4):
    steps, score = runs[f'k = {k:.0e} N/m'], scores[f'k = {k:.0e} N/m']
    sunk = -steps.gap[-1].sum()
    assert abs(sunk / (robot.total_mass * GRAVITY / k) - 1.0) < 0.01
    load = np.hypot(steps.force[-1, :, 0], steps.force[-1, :, 1]) / steps.force[-1, :, 2]
    assert abs(score['creep'][-1] / (SLIP_SPEED * load.max() / FRICTION) - 1.0) < 0.03
    assert score['momentum'][-1] < 1e-6
    assert {'penetration', 'creep', 'signorini'} <= set(score.broken)
assert scores['ncp'].broken == {}

# %%
# Stiffer springs sink less, and creep as much.

names = {'penetration': '[m]', 'creep': '[m/s]', 'momentum': '[N s]'}
figure, panels = plt.subplots(3, 1, sharex=True, figsize=(7.0, 6.5), layout='constrained')
for axes, (name, unit) in zip(panels, names.items(), strict=True):
    for label, score in scores.items():
        axes.semilogy(score.time, np.maximum(score[name], 1e-17), label=label)
    axes.axhline(scores['ncp'].limit(name), color='0.5', linestyle='--', linewidth=1.0)
    axes.set_ylabel(f'{name} {unit}')
panels[0].set_title('go1 on springs: residuals of every step; dashed: limit')
panels[0].legend(loc='center right')
panels[-1].set_xlabel('time [s]')
plt.show()
