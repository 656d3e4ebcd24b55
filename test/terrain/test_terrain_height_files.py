"""Heights from .npy files and grey images."""

import warnings

import numpy as np
import pytest
from PIL import Image

from contact_sim.errors import InvalidInput
from contact_sim.terrain import HeightField

GREY = np.array([[0, 1, 2], [65535, 40000, 300]], dtype=np.uint16)
"""Two rows of pixels, the upper one first."""


@pytest.fixture
def png(tmp_path):
    path = tmp_path / 'ground.png'
    Image.fromarray(GREY).save(path)
    return path


def test_metres_in_an_array(tmp_path):
    heights = np.random.default_rng(0).normal(size=(4, 5))
    np.save(tmp_path / 'a.npy', heights)
    field = HeightField.from_file(tmp_path / 'a.npy', 0.2)
    assert (field.heights == heights).all()
    assert field.horizontal_scale == 0.2
    low = HeightField.from_file(tmp_path / 'a.npy', 0.2, vertical_scale=2.0, base=-1.0)
    assert low.heights == pytest.approx(2.0 * heights - 1.0)


def test_integers_in_an_array_need_a_scale(tmp_path):
    np.save(tmp_path / 'a.npy', np.array([[0, 1], [-2, 3]], dtype=np.int16))
    field = HeightField.from_file(str(tmp_path / 'a.npy'), 0.1, 0.005)
    assert field.heights == pytest.approx(np.array([[0.0, 0.005], [-0.01, 0.015]]))
    with pytest.raises(InvalidInput, match=r'vertical_scale is missing.*int16'):
        HeightField.from_file(tmp_path / 'a.npy', 0.1)


def test_16_bits_come_back_exactly_x_right_and_y_up(png):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        field = HeightField.from_file(png, 0.1, vertical_scale=0.001, base=-2.0)
    assert field.heights.shape == (3, 2)
    assert field.heights == pytest.approx(GREY[::-1].T * 0.001 - 2.0)
    assert field.height_at(0.0, 0.1) == pytest.approx(-2.0)  # the upper left pixel
    assert field.height_at(0.0, 0.0) == pytest.approx(65.535 - 2.0)  # the lower left one


def test_an_image_without_resolution_is_refused(png):
    with pytest.raises(InvalidInput, match='vertical_scale is missing: metres per unit'):
        HeightField.from_file(png, 0.1)
    with pytest.raises(InvalidInput, match='horizontal_scale = None'):
        HeightField.from_file(png, None, 0.001)


def test_8_bits_are_read_with_a_warning(tmp_path):
    Image.fromarray(np.array([[0, 255], [7, 8]], dtype=np.uint8)).save(tmp_path / 'a.png')
    with pytest.warns(UserWarning, match=r'a\.png: 8 bits per pixel: heights in steps of 1/255'):
        field = HeightField.from_file(tmp_path / 'a.png', 0.1, 1.0 / 255.0)
    assert field.heights[1, 1] == pytest.approx(1.0)


@pytest.mark.parametrize('mode', ['RGB', 'RGBA', 'LA', 'P', '1'])
def test_other_images_are_refused(tmp_path, mode):
    Image.new(mode, (3, 3)).save(tmp_path / 'a.png')
    with pytest.raises(InvalidInput, match=f'mode {mode}: expected grey, 16 bits'):
        HeightField.from_file(tmp_path / 'a.png', 0.1, 0.001)


def test_missing_and_broken_files_are_refused(tmp_path, png):
    with pytest.raises(InvalidInput, match=r'none\.png: No such file'):
        HeightField.from_file(tmp_path / 'none.png', 0.1, 0.001)
    (tmp_path / 'text.png').write_text('no image')
    with pytest.raises(InvalidInput, match=r'text\.png: expected an image'):
        HeightField.from_file(tmp_path / 'text.png', 0.1, 0.001)
    (tmp_path / 'cut.png').write_bytes(png.read_bytes()[:45])
    with pytest.raises(InvalidInput, match=r'cut\.png'):
        HeightField.from_file(tmp_path / 'cut.png', 0.1, 0.001)
    (tmp_path / 'text.npy').write_text('no array')
    with pytest.raises(InvalidInput, match=r'text\.npy: NumPy cannot read it'):
        HeightField.from_file(tmp_path / 'text.npy', 0.1)
    (tmp_path / 'empty.npy').write_text('')
    with pytest.raises(InvalidInput, match=r'empty\.npy: NumPy cannot read it'):
        HeightField.from_file(tmp_path / 'empty.npy', 0.1)


@pytest.mark.parametrize(
    ('values', 'message'),
    [
        (np.array([[0.0, np.nan], [0.0, 0.0]]), r'a\.npy: .*heights\[0, 1\] = nan m'),
        (np.zeros(3), r'shape \(3,\)'),
        (np.zeros((2, 2, 2)), r'shape \(2, 2, 2\)'),
        (np.zeros((2, 2), dtype=bool), 'bool values: expected numbers'),
        (np.zeros((2, 2), dtype=complex), 'complex128 values: expected numbers'),
    ],
)
def test_bad_arrays_are_refused(tmp_path, values, message):
    np.save(tmp_path / 'a.npy', values)
    with pytest.raises(InvalidInput, match=message):
        HeightField.from_file(tmp_path / 'a.npy', 0.1)


@pytest.mark.parametrize('scale', [0.0, -0.1, np.nan, np.inf])
def test_scales_that_are_not_positive_are_refused(png, scale):
    with pytest.raises(InvalidInput, match='vertical_scale'):
        HeightField.from_file(png, 0.1, scale)
    with pytest.raises(InvalidInput, match='horizontal_scale'):
        HeightField.from_file(png, scale, 0.001)
