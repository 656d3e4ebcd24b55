"""Gymnasium environments: their interface, and what happens in them against `Simulator`."""

import subprocess
import sys
import warnings
from dataclasses import fields, replace

import gymnasium
import numpy as np
import onnx
import pinocchio as pin
import pytest
import yaml
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from onnx import helper, numpy_helper

from contact_sim import (
    Compliant,
    InvalidInput,
    Plane,
    Simulator,
    UnknownName,
    load_robot,
)
from contact_sim.control import load_policy
from contact_sim.gym import USUAL, Commands, Env, Randomisation, Rewards, VectorEnv
from contact_sim.robot._actuators import JointCommand
from contact_sim.simulation._worlds import with_masses

ID = 'contact_sim/Velocity-v0'
SAME_MASSES = replace(USUAL, mass_scale=(1.0, 1.0))
"""Without masses, which take a sixth of a second per world."""
OF_EPISODES = replace(SAME_MASSES, friction=(0.8, 0.8))
"""Nothing for which a reset makes the worlds anew."""


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


@pytest.fixture(scope='module')
def actions():
    """Forty actions of four worlds."""
    return np.random.default_rng(0).uniform(-0.5, 0.5, (40, 4, 12))


def rollout(env, actions, seed=7, **options):
    """Return observations and rewards of all steps; the actions of as many worlds as there are."""
    seen = [env.reset(seed=seed, options=options or None)[0]]
    rewards = []
    for action in actions:
        observation, reward, *_ = env.step(action[: env.num_envs])
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), np.array(rewards)


# --- The interface


@pytest.mark.parametrize(
    'settings', [{}, {'contact_models': ['ncp', 'sap'], 'randomisation': OF_EPISODES}]
)
def test_gymnasium_checks_the_environment(settings):
    env = gymnasium.make(ID, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        check_env(env.unwrapped)
    assert isinstance(env.unwrapped, Env)


def test_make_vec_makes_one_environment_of_many_worlds():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        env = gymnasium.make_vec(ID, num_envs=3)
    assert isinstance(env, VectorEnv)
    assert isinstance(env, gymnasium.vector.VectorEnv)
    assert env.metadata['autoreset_mode'] is AutoresetMode.NEXT_STEP
    assert env.observation_space.shape == (3, 48)
    assert env.action_space.shape == (3, 12)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert reward.shape == terminated.shape == truncated.shape == (3,)
    assert terminated.dtype == truncated.dtype == bool


def test_episode_statistics_of_gymnasium_work_with_it():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(VectorEnv(2, episode_seconds=0.1))
    env.reset(seed=0)
    total = 0.0
    for _ in range(5):
        _, reward, _, truncated, info = env.step(np.zeros((2, 12)))
        total = total + reward
    assert truncated.all()
    np.testing.assert_allclose(info['episode']['r'], total)
    np.testing.assert_array_equal(info['episode']['l'], 5)


@pytest.mark.parametrize('threads', [1, 2])
def test_a_seed_decides_every_bit(actions, threads):
    envs = [VectorEnv(4, randomisation=SAME_MASSES, threads=n) for n in (1, threads)]
    first, second = (rollout(env, actions) for env in envs)
    again, other = rollout(envs[0], actions), rollout(envs[0], actions, seed=8)
    for run in (second, again):
        np.testing.assert_array_equal(first[0], run[0])
        np.testing.assert_array_equal(first[1], run[1])
    assert np.abs(first[0] - other[0]).max(axis=(0, 2)).min() > 0.01


def test_a_world_is_the_environment_with_its_seed(actions):
    """With two contact models in turn, and all that can be drawn."""
    models, settings = ['ncp', 'compliant'], {'randomisation': USUAL}
    many = VectorEnv(2, contact_models=models, **settings)
    seen, rewards = rollout(many, actions, seed=20)
    for world, model in enumerate(models):
        one = Env(contact_models=model, **settings)
        observation, info = one.reset(seed=20 + world)
        assert info['contact_model'] == model
        np.testing.assert_array_equal(observation, seen[0, world])
        for k, action in enumerate(actions):
            observation, reward, *_ = one.step(action[world])
            np.testing.assert_array_equal(observation, seen[k + 1, world])
            assert reward == rewards[k, world]


def test_several_models_of_one_environment_are_drawn():
    env, names = Env(contact_models=['ncp', 'todorov']), []
    for seed in range(8):
        names.append(env.reset(seed=seed)[1]['contact_model'])
    assert set(names) == {'ncp', 'todorov'}
    assert env.reset(seed=0)[1]['contact_model'] == names[0]


# --- The physics


@pytest.mark.parametrize(
    ('model', 'drawn', 'sim_model', 'friction', 'mass'),
    [
        ('ncp', Randomisation(), 'ncp', 0.8, 1.0),
        ('ncp', Randomisation(friction=(0.1, 0.1)), 'ncp', 0.1, 1.0),
        ('ncp', Randomisation(mass_scale=(1.2, 1.2)), 'ncp', 0.8, 1.2),
        (
            'compliant', Randomisation(parameters={'compliant': {'stiffness': (2e4, 2e4)}}),
            Compliant(stiffness=2e4), 0.8, 1.0,
        ),
    ],
    ids=['as it is', 'friction', 'masses', 'parameters'],
)  # fmt: skip
def test_a_world_moves_as_a_simulator_does(go1, actions, model, drawn, sim_model, friction, mass):
    drawn = replace(drawn, velocity_start=1.0, joint_start=0.1, heading=True)
    env = Env(contact_models=model, randomisation=drawn, gains=(60.0, 1.5), action_scale=0.2)
    env.reset(seed=3)
    masses = [mass * inertia.mass for inertia in list(go1.pinocchio_model.inertias)[1:]]
    sim = Simulator(with_masses(go1, masses), sim_model, friction=friction, time_step=2e-3)
    sim.reset(env.task.q[0], env.task.v[0])
    zero, pose = np.zeros(12), go1.joint_positions(go1.reference_configuration())
    for action in actions[:25, 0]:
        env.step(action)
        command = JointCommand(pose + 0.2 * action, zero, zero, zero + 60.0, zero + 1.5)
        for _ in range(10):
            positions, speeds = go1.joint_positions(sim.q), go1.joint_velocities(sim.v)
            sim.step(command.effort_at(positions, speeds))
    np.testing.assert_allclose(env.task.q[0], sim.q, atol=1e-8)
    np.testing.assert_allclose(env.task.v[0], sim.v, atol=1e-6)


def test_drawn_numbers_lie_in_their_ranges_and_differ():
    """Stiffness evenly in its logarithm: half of the worlds below the geometric mean."""
    drawn = Randomisation(parameters={'compliant': {'stiffness': (1e3, 1e5)}})
    env = VectorEnv(2, contact_models='compliant', randomisation=drawn)
    generators = [np.random.default_rng(seed) for seed in range(400)]
    model = env.task.models[0]
    values = [env.task._drawn_model(model, own).parameters.stiffness for own in generators]
    assert min(values) >= 1e3
    assert max(values) <= 1e5
    assert np.mean(np.array(values) < 1e4) == pytest.approx(0.5, abs=0.08)


def test_a_push_gives_its_impulse_on_ice(go1):
    """Without friction the horizontal momentum of the robot is that of the pushes so far."""
    drawn = Randomisation(friction=(0.0, 0.0), push=(3.0, 3.0), push_interval=(0.1, 0.1))
    env = VectorEnv(3, randomisation=drawn)
    env.reset(seed=0)
    for _ in range(10):  # begins after 0.1 s and lasts for 0.1 s
        env.step(np.zeros((3, 12)))
    model, angles = go1.pinocchio_model, []
    for q, v in zip(env.task.q, env.task.v, strict=True):
        data = model.createData()
        momentum = np.array(pin.computeCentroidalMomentum(model, data, q, v).linear[:2])
        assert np.linalg.norm(momentum) == pytest.approx(3.0, rel=1e-4)  # base axes turn: O(h)
        angles.append(np.arctan2(*momentum))
    assert np.ptp(angles) > 0.1


def test_noise_is_bounded_and_only_seen(actions):
    plain, noisy = (
        rollout(VectorEnv(4, randomisation=Randomisation(noise=level)), actions)[0]
        for level in (0.0, 0.5)
    )
    parts = [(0.1 * 2.0, 3), (0.2 * 0.25, 3), (0.05, 3), (0.0, 3), (0.01, 12), (1.5 * 0.05, 12),
             (0.0, 12)]  # fmt: skip
    bounds = 0.5 * np.concatenate([np.full(size, bound) for bound, size in parts])
    # the commands are drawn after the noise of the step before: compare within the first
    difference = np.abs(noisy - plain).max(axis=(0, 1))
    assert (difference <= bounds + 1e-5).all()
    assert (difference[bounds > 0.0] > 0.8 * bounds[bounds > 0.0]).all()


# --- The task


def test_the_terms_of_the_reward(go1, actions):
    """Each from its definition, with rotations of Pinocchio, and their sum is the reward."""
    weights = Rewards()
    env = VectorEnv(2, randomisation=Randomisation(velocity_start=0.5), rewards=weights)
    env.reset(seed=4)
    before_action = np.zeros((2, 12))
    for action in actions[:5, :2]:
        before, command = env.task.v, env.task.velocity.copy()
        _, reward, _, _, info = env.step(action)
        q, v = env.task.q, env.task.v
        for i in range(2):
            down = pin.Quaternion(q[i, 3:7]).toRotationMatrix().T @ [0.0, 0.0, -1.0]
            error = command[i] - v[i, [0, 1, 5]]
            rates = (go1.joint_velocities(v[i]) - go1.joint_velocities(before[i])) / 0.02
            expected = {
                'tracking_lin_vel': np.exp(-(error[0] ** 2 + error[1] ** 2) / 0.25),
                'tracking_ang_vel': np.exp(-(error[2] ** 2) / 0.25),
                'lin_vel_z': v[i, 2] ** 2,
                'ang_vel_xy': v[i, 3] ** 2 + v[i, 4] ** 2,
                'orientation': down[0] ** 2 + down[1] ** 2,
                'dof_acc': np.sum(rates**2),
                'action_rate': np.sum((action[i] - before_action[i]) ** 2),
            }
            for name, value in expected.items():
                found = info['reward_terms'][name][i]
                assert found == pytest.approx(0.02 * getattr(weights, name) * value, rel=1e-9)
            assert info['reward_terms']['torques'][i] < 0.0
            assert info['reward_terms']['termination'][i] == 0.0
            assert set(info['reward_terms']) == {entry.name for entry in fields(Rewards)}
            total = sum(values[i] for values in info['reward_terms'].values())
            assert reward[i] == pytest.approx(total, rel=1e-12)
        before_action = action


def test_torques_are_those_that_carry_the_robot(go1):
    """Standing still, joint PD bears τ = k_p (q* − q), which the term squares."""
    weights = Rewards(**{entry.name: 0.0 for entry in fields(Rewards)})
    env = Env(rewards=replace(weights, torques=-1.0), episode_seconds=5.0)
    env.reset(seed=0, options={'velocity': (0.0, 0.0, 0.0)})
    for _ in range(100):
        _, reward, *_ = env.step(np.zeros(12))
    bent = env.task.pose - go1.joint_positions(env.task.q[0])
    assert reward == pytest.approx(-0.02 * np.sum((env.task.kp * bent) ** 2), rel=1e-3)


def test_a_robot_without_gains_falls():
    env = Env(gains=(0.0, 0.0))
    env.reset(seed=0)
    steps, terminated = 0, False
    while not terminated and steps < 100:
        _, reward, terminated, truncated, info = env.step(np.zeros(12))
        steps += 1
    assert terminated
    assert not truncated
    assert 5 < steps < 50
    assert env.task.q[0, 2] < 0.5 * env.task.robot.reference_configuration()[2]
    assert info['reward_terms']['termination'] == -1.0
    assert reward < -0.9


@pytest.mark.parametrize('ground', [Plane(), Plane((-0.2, 0.0, 1.0), 0.7)], ids=['flat', 'slope'])
def test_a_robot_that_stands_is_truncated_at_the_end(ground):
    env = Env(terrain=[ground], episode_seconds=1.0)
    env.reset(seed=0)
    ends = [env.step(np.zeros(12))[2:4] for _ in range(50)]
    assert ends == [(False, False)] * 49 + [(False, True)]


def test_grounds_are_drawn_and_measured_from():
    """Robots on a ground at 3 m have not fallen, nor have those at −3 m."""
    grounds = [Plane(offset=height) for height in (-3.0, 3.0)]
    env = VectorEnv(6, terrain=grounds)
    env.reset(seed=0)
    _, _, terminated, *_ = env.step(np.zeros((6, 12)))
    heights = env.task.q[:, 2].round()
    assert set(heights) == {-3.0, 3.0}
    assert not terminated.any()


def test_commands_are_drawn_in_their_ranges():
    commands = Commands((0.2, 0.4), (-0.1, 0.1), (0.5, 0.5), seconds=0.04, still=0.25)
    env, seen = VectorEnv(8, commands=commands), []
    env.reset(seed=0)
    for _ in range(40):
        seen.append(env.step(np.zeros((8, 12)))[4]['velocity'])
    seen = np.array(seen)
    still = (seen == 0.0).all(axis=2)
    assert still.mean() == pytest.approx(0.25, abs=0.1)
    for axis, (low, high) in enumerate(((0.2, 0.4), (-0.1, 0.1), (0.5, 0.5))):
        moving = seen[..., axis][~still]
        assert moving.min() >= low
        assert moving.max() <= high
    changed = np.abs(np.diff(seen, axis=0)).max(axis=(1, 2)) > 0.0
    np.testing.assert_array_equal(changed, np.arange(len(changed)) % 2 == 0)


def test_a_commanded_velocity_lasts_for_the_episode():
    env = VectorEnv(2, commands=Commands(seconds=0.02))
    rows = np.array([[0.5, 0.0, 0.1], [-0.2, 0.1, 0.0]])
    observation, _ = env.reset(seed=0, options={'velocity': rows})
    for _ in range(5):
        np.testing.assert_allclose(observation[:, 9:12], rows * [2.0, 2.0, 0.25], rtol=1e-6)
        observation = env.step(np.zeros((2, 12)))[0]


# --- Ends of episodes


def test_next_step_starts_the_next_episode(actions):
    env = VectorEnv(2, episode_seconds=0.1, randomisation=SAME_MASSES)
    env.reset(seed=0)
    for k in range(5):
        _, _, _, truncated, _ = env.step(actions[k, :2])
    assert truncated.all()
    moved = env.task.q
    _, reward, terminated, truncated, _ = env.step(actions[5, :2])
    assert not (terminated | truncated).any()
    np.testing.assert_array_equal(reward, 0.0)
    assert np.abs(env.task.q - moved).max() > 1e-2
    assert (env.task.q[:, :2] == 0.0).all()  # at the start again
    _, reward, *_ = env.step(actions[6, :2])
    assert (reward != 0.0).all()


def test_same_step_hands_over_the_last_observation(actions):
    settings = {'episode_seconds': 0.1, 'randomisation': SAME_MASSES}
    same = VectorEnv(2, autoreset_mode=AutoresetMode.SAME_STEP, **settings)
    off = VectorEnv(2, autoreset_mode='Disabled', **settings)
    assert same.metadata['autoreset_mode'] is AutoresetMode.SAME_STEP
    for env in (same, off):
        env.reset(seed=0)
        for k in range(4):
            env.step(actions[k, :2])
    observation, reward, _, truncated, info = same.step(actions[4, :2])
    last, last_reward, *_ = off.step(actions[4, :2])
    assert truncated.all()
    np.testing.assert_array_equal(np.stack(info['final_obs']), last)
    np.testing.assert_array_equal(info['_final_obs'], True)
    np.testing.assert_array_equal(reward, last_reward)
    begin, _ = off.reset(options={'reset_mask': np.array([True, True])})
    np.testing.assert_array_equal(observation, begin)
    np.testing.assert_array_equal(same.step(actions[5, :2])[0], off.step(actions[5, :2])[0])


def test_worlds_do_not_feel_the_reset_of_others(actions):
    plain, masked = (
        VectorEnv(4, autoreset_mode='Disabled', randomisation=SAME_MASSES) for _ in range(2)
    )
    expected, _ = rollout(plain, actions)
    masked.reset(seed=7)
    for k, action in enumerate(actions):
        if k == 10:
            observation, _ = masked.reset(options={'reset_mask': np.arange(4) == 1})
            np.testing.assert_array_equal(observation[[0, 2, 3]], expected[k][[0, 2, 3]])
        observation, *_ = masked.step(action)
        np.testing.assert_array_equal(observation[[0, 2, 3]], expected[k + 1][[0, 2, 3]])
    assert np.abs(observation[1] - expected[-1][1]).max() > 0.01


def test_a_world_that_is_not_finite_has_fallen():
    """Efforts of 1e300 stop their world, and only that; a reset lets it go on."""
    env = VectorEnv(2, gains=(1e99, 0.0), autoreset_mode='Disabled', robot=unlimited())
    env.reset(seed=0)
    for _ in range(20):
        observation, reward, terminated, *_ = env.step(np.ones((2, 12)) * [[1.0], [0.0]])
        assert np.isfinite(observation).all()
        assert np.isfinite(reward).all()
        if terminated.any():
            break
    assert terminated[0]
    env.reset(seed=0)
    assert np.isfinite(env.step(np.zeros((2, 12)))[0]).all()


def unlimited():
    return load_robot('go1').with_actuators(effort_limit=np.inf)


# --- From training to use


@pytest.mark.parametrize(
    ('layout', 'size'), [('legged_gym', 48), ('unitree_rl_gym', 47), ('mujoco_playground', 48)]
)
def test_a_trained_network_runs_outside_of_the_environment(go1, tmp_path, layout, size):
    """A linear network: its actions and motion as a policy of a simulator are those here."""
    random = np.random.default_rng(2)
    weight = 0.03 * random.normal(size=(size, 12)).astype(np.float32)
    nodes = [
        helper.make_node('MatMul', ['obs', 'W'], ['product']),
        helper.make_node('Tanh', ['product'], ['actions']),
    ]
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ['n', length])
        for name, length in (('obs', size), ('actions', 12))
    ]
    graph = helper.make_graph(
        nodes, 'policy', ends[:1], ends[1:], [numpy_helper.from_array(weight, 'W')]
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8),
        tmp_path / 'net.onnx',
    )
    env = Env(layout=layout)
    description = yaml.safe_dump(env.task.policy_description('net.onnx'))
    (tmp_path / 'policy.yaml').write_text(description)
    policy = load_policy(tmp_path / 'policy.yaml', go1)
    policy.velocity = (0.4, 0.1, -0.2)
    observation, _ = env.reset(seed=0, options={'velocity': policy.velocity})
    sim = Simulator(go1, 'ncp', time_step=2e-3)
    sim.reset(env.task.q[0], env.task.v[0])
    for _ in range(15):
        observation, *_ = env.step(np.tanh(observation @ weight))
        for _ in range(10):
            sim.step(policy.effort(sim.time, sim.q, sim.v))
    np.testing.assert_allclose(env.task.q[0], sim.q, atol=1e-5)
    assert np.abs(policy.action).max() > 0.05


# --- Wrong input


@pytest.mark.parametrize(
    ('settings', 'kind', 'words'),
    [
        ({'contact_models': 'npc'}, UnknownName, 'ncp'),
        ({'contact_models': []}, InvalidInput, 'contact_models'),
        ({'contact_models': ['ncp', 'sap', 'lcp']}, InvalidInput, 'expected 1 to 2'),
        ({'contact_models': 'hybrid'}, InvalidInput, 'no compiled step'),
        ({'num_envs': 0}, InvalidInput, 'num_envs'),
        ({'terrain': []}, InvalidInput, 'terrain'),
        ({'terrain': 'sea'}, UnknownName, 'plane'),
        ({'robot': 'go3'}, UnknownName, 'go1'),
        ({'robot': 'double_pendulum'}, InvalidInput, 'floating base'),
        ({'layout': 'legged'}, UnknownName, 'legged_gym'),
        ({'gains': (-1.0, 1.0)}, InvalidInput, 'gains: kp'),
        ({'gains': (1.0, [1.0, 2.0])}, InvalidInput, 'gains: kd'),
        ({'action_scale': np.nan}, InvalidInput, 'action_scale'),
        ({'time_step': 0.0}, InvalidInput, 'time_step'),
        ({'decimation': 0}, InvalidInput, 'decimation'),
        ({'episode_seconds': -1.0}, InvalidInput, 'episode_seconds'),
        ({'commands': (0.0, 1.0)}, InvalidInput, 'commands'),
        ({'render_mode': 'human'}, InvalidInput, 'render_mode'),
        ({'autoreset_mode': 'never'}, UnknownName, 'NextStep'),
        (
            {'randomisation': Randomisation(parameters={'sap': {'beta': (1.0, 2.0)}})},
            UnknownName, 'ncp',
        ),
        (
            {'randomisation': Randomisation(parameters={'ncp': {'betta': (1.0, 2.0)}})},
            UnknownName, 'parameter of ncp',
        ),
    ],
)  # fmt: skip
def test_settings_that_are_not_allowed(settings, kind, words):
    with pytest.raises(kind, match=words):
        VectorEnv(**{'num_envs': 2} | settings).reset(seed=0)


@pytest.mark.parametrize(
    'make',
    [
        lambda: Randomisation(friction=(1.0, 0.5)),
        lambda: Randomisation(mass_scale=(0.0, 1.0)),
        lambda: Randomisation(noise=-1.0),
        lambda: Randomisation(push=(0.0, np.inf)),
        lambda: Commands(forward=(1.0, -1.0)),
        lambda: Commands(still=1.5),
        lambda: Commands(seconds=0.0),
        lambda: Rewards(torques=np.nan),
    ],
)
def test_ranges_and_weights_that_are_not_allowed(make):
    with pytest.raises(InvalidInput):
        make()


def test_calls_that_are_not_allowed():
    env = VectorEnv(2)
    with pytest.raises(InvalidInput, match='before the first reset'):
        env.step(np.zeros((2, 12)))
    with pytest.raises(UnknownName, match='velocity'):
        env.reset(options={'velocities': 1.0})
    with pytest.raises(InvalidInput, match='seed: 3 given'):
        env.reset(seed=[1, 2, 3])
    with pytest.raises(InvalidInput, match='velocity: shape'):
        env.reset(seed=0, options={'velocity': (1.0, 2.0)})
    env.reset(seed=0)
    with pytest.raises(InvalidInput, match='actions: shape'):
        env.step(np.zeros((2, 11)))
    with pytest.raises(InvalidInput, match='reset_mask'):
        env.reset(options={'reset_mask': [0, 1]})
    with pytest.raises(InvalidInput, match='before the first reset'):
        Env().step(np.zeros(12))
    ended = VectorEnv(2, episode_seconds=0.02, autoreset_mode='Disabled')
    ended.reset(seed=0)
    ended.step(np.zeros((2, 12)))
    with pytest.raises(InvalidInput, match='have ended'):
        ended.step(np.zeros((2, 12)))


def test_without_gymnasium_the_extra_is_named():
    script = (
        "import sys; sys.modules['gymnasium'] = None\n"
        'try:\n    import contact_sim.gym\nexcept ImportError as error:\n    print(error)'
    )
    run = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True)
    assert "pip install 'contact_sim[gym]'" in run.stdout, run.stderr


class Moody:
    """Raises where it is looked up."""

    def __hash__(self):
        raise RuntimeError('no')


@pytest.mark.parametrize('mode', ['Sometimes', 3, None, [], Moody()])
def test_other_modes_of_a_new_episode_are_refused(mode):
    with pytest.raises(UnknownName, match='autoreset_mode'):
        VectorEnv(2, autoreset_mode=mode)
