"""todorov between bodies is MuJoCo between bodies: in each step of a collision."""

import numpy as np
import pytest

from contact_sim import Simulator, Todorov, joined, loose_ball, loose_box

mujoco = pytest.importorskip('mujoco', reason='the peer MuJoCo is not installed')
SCENE = """
<mujoco><option timestep="0.001" iterations="100" tolerance="0" ls_tolerance="1e-14"
 ls_iterations="50"/>
<default><geom friction="0.6 0.005 0.0001" condim="3"/></default>
<worldbody><geom type="plane" size="5 5 1"/>
<body pos="0 0 0.1"><freejoint/><geom type="box" size="0.2 0.15 0.1" mass="2"/></body>
<body pos="{x} 0 {z}"><freejoint/><geom type="{shape}" size="{size}" mass="{mass}"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize('speed', [0.0, 0.4])
def test_a_ball_meets_a_box_as_in_mujoco(speed):
    """The ball falls on the box beside its middle, rolls, and tips it; in a vertical plane.

    In it both engines lay the tangents, and with them the pyramid of friction, alike.
    """
    x, z, radius, mass = 0.07, 0.31, 0.1, 1.0
    text = SCENE.format(x=x, z=z, shape='sphere', size=radius, mass=mass)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    bodies = {'box': loose_box((0.4, 0.3, 0.2), 2.0), 'ball': loose_ball(radius, mass)}
    both = joined(bodies, against_each_other=True)
    sim = Simulator(both, Todorov(), friction=0.6, time_step=1e-3)
    q = np.zeros(14)
    q[[2, 6, 7, 9, 13]] = 0.1 - 1e-6, 1.0, x, z, 1.0
    v = np.zeros(12)
    v[6] = speed
    sim.reset(q, v)
    data.qpos[:] = [0, 0, 0.1 - 1e-6, 1, 0, 0, 0, x, 0, z, 1, 0, 0, 0]
    data.qvel[6] = speed
    met = 0
    for _ in range(400):
        report = sim.step(np.zeros(0))
        mujoco.mj_step(model, data)
        met += report.pairs.normal_force.max(initial=0.0) > 0.0
        for k in range(2):
            own, turn = report.v[6 * k : 6 * k + 6], np.zeros(9)
            mujoco.mju_quat2Mat(turn, report.q[7 * k :][[6, 3, 4, 5]])
            linear = turn.reshape(3, 3) @ own[:3]  # MuJoCo's has the axes of the world
            velocity = np.concatenate([linear, own[3:]])
            np.testing.assert_allclose(velocity, data.qvel[6 * k : 6 * k + 6], atol=1e-8)
    assert met > 50
