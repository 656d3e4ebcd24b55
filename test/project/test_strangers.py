"""benchmarks/strangers.py: a table of any folder of robot descriptions."""

import strangers
from legged import quadruped
from urdf_texts import ONE_LEG, link, robot


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_descriptions_of_folders_and_files_are_found_once(tmp_path):
    one = write(tmp_path, 'repo/urdf/one.urdf', ONE_LEG)
    two = write(tmp_path, 'repo/two.urdf.xacro', ONE_LEG)
    write(tmp_path, 'repo/notes.txt', 'none')
    (tmp_path / 'repo' / 'loop').symlink_to(tmp_path / 'repo')
    (tmp_path / 'repo' / 'same.urdf').symlink_to(one)
    (tmp_path / 'linked').symlink_to(tmp_path / 'repo')
    found = list(strangers.descriptions([tmp_path / 'linked', one]))
    assert sorted(path.resolve() for path in found) == sorted([one, two])


def test_a_description_is_called_by_its_path_and_version(tmp_path):
    one = write(tmp_path, 'repo/urdf/one.urdf', ONE_LEG)
    assert strangers.name_of(one, [tmp_path]) == 'repo/urdf/one.urdf'
    assert strangers.name_of(one, [one]) == 'one.urdf'
    write(tmp_path, 'repo/COMMIT', '0123456789abcdef 2026-01-31\n')
    assert strangers.name_of(one, [one]) == 'repo/urdf/one.urdf (0123456, 2026-01-31)'


def test_each_is_judged_in_a_process_of_its_own(tmp_path):
    stands = strangers.judged_apart(write(tmp_path, 'r.urdf', quadruped()), [], 300.0)
    assert stands['stands'], stands
    assert strangers.row('r', stands) == (
        f'| r | 17 | 12 | {stands["mass"]:.4g} | 4: foot_fl (1) | bent to 90 % | '
        f'yes, {strangers.short(stands["why"])} |'
    )
    light = robot(link('base', 1.0), link('tip', 0.0), name='light').replace(
        '</robot>', '<joint name="j" type="continuous"><parent link="base"/><child link="tip"/>'
        '<origin/><axis xyz="1 0 0"/></joint></robot>',
    )  # fmt: skip
    refused = strangers.judged_apart(write(tmp_path, 'l.urdf', light), [], 300.0)
    assert refused['refused'].startswith("joint 'j' moves link 'tip', whose mass is 0 kg")
    assert strangers.row('l', refused).startswith('| l | | | | | | refused: joint')


def test_one_that_takes_too_long_does_not_hold_up_the_others(tmp_path):
    found = strangers.judged_apart(write(tmp_path, 'r.urdf', ONE_LEG), [], 0.01)
    assert found == {'refused': 'no answer within 0.01 s'}
