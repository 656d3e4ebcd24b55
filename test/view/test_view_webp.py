"""A clip as WebP: every frame, in its time and with its colours."""

import numpy as np
import pytest
from PIL import Image, features

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view._saved import WRITERS


@pytest.mark.skipif(not features.check('webp'), reason='this Pillow cannot write WebP')
def test_a_webp_has_all_frames(tmp_path):
    colours = [(200, 30, 30), (30, 200, 30), (30, 30, 200)]
    frames = [np.full((48, 64, 3), colour, dtype=np.uint8) for colour in colours]
    WRITERS['.webp'](tmp_path / 'clip.webp', iter(frames), 25.0, (64, 48))
    with Image.open(tmp_path / 'clip.webp') as clip:
        assert (clip.size, clip.n_frames) == ((64, 48), 3)
        for k, colour in enumerate(colours):
            clip.seek(k)
            seen = np.asarray(clip.convert('RGB')).mean(axis=(0, 1))
            assert clip.info['duration'] == 40
            np.testing.assert_allclose(seen, colour, atol=8.0)
