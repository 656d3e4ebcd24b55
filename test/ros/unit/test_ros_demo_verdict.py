"""What the demo says about figures and arguments; without a network."""

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from contact_sim.ros.demo import complaints, main, power_of_ten

GOOD = {
    'base_height_m': 0.27,
    'weight_error': 1e-9,
    'messages': {'/clock': 5000, 'odom': 1250},
}


@pytest.mark.parametrize('seconds', ['0', '-1', 'nan', 'inf', '0.01', 'five'])
def test_the_demo_refuses_a_time_that_is_none(seconds, capsys):
    with pytest.raises(SystemExit) as end:
        main([f'--seconds={seconds}'])
    assert end.value.code == 2
    assert f'argument --seconds: {seconds}' in capsys.readouterr().err.replace("'", '').replace(
        'invalid watched_seconds value: ', ''
    )


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({}, None),
        ({'base_height_m': 0.1}, 'the robot fell: its base is at 0.100 m'),
        ({'base_height_m': float('nan')}, 'the robot fell'),
        ({'weight_error': 0.2}, 'do not carry the weight: error 0.2'),
        ({'weight_error': float('nan')}, 'do not carry the weight'),
        ({'messages': {'/clock': 5000, 'odom': 0}}, 'no message on odom'),
    ],
)
def test_what_the_demo_complains_about(change, complaint):
    check_complaints(GOOD | change, complaint)


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({}, None),
        ({'height_change_m': 0.04}, 'left its height by 0.040 m'),
        ({'way_m': 0.1}, 'it went 0.10 m of 0.90 m'),
        ({'way_m': float('nan')}, 'it went nan m'),
    ],
)
def test_what_the_trot_demo_complains_about(change, complaint):
    good = {name: value for name, value in GOOD.items() if name != 'weight_error'}
    good |= {'height_change_m': 2e-3, 'way_m': 0.88, 'commanded_way_m': 0.9}
    check_complaints(good | change, complaint)


def check_complaints(figures, complaint):
    """Check that there is one complaint with these words, or none."""
    found = complaints(figures, standing=0.27)
    assert len(found) == (complaint is not None)
    assert all(complaint in one for one in found)


@pytest.mark.parametrize(
    ('value', 'text'), [(3.24e-8, '3.2·10⁻⁸'), (0.0, '0'), (1.0, '1.0·10⁰'), (12e9, '1.2·10¹⁰')]
)
def test_small_numbers_are_written_as_people_do(value, text):
    assert power_of_ten(value) == text
