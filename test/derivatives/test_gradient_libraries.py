"""Runs in PyTorch and JAX: gradients equal those of the run itself, under both of their types."""

import importlib
import sys

import numpy as np
import pytest
from test_autodiff import costs, gradients, start

from contact_sim import InvalidInput, Simulator, load_robot


@pytest.fixture(scope='module')
def sim():
    return Simulator(load_robot('quadruped'), contact_model='sap', friction=0.3)


@pytest.mark.parametrize(('kind', 'relative'), [('float64', 1e-12), ('float32', 1e-3)])
def test_torch_has_the_gradients_of_the_run(sim, kind, relative):
    torch = pytest.importorskip('torch', reason='the extra torch is not installed')
    from contact_sim.derivatives.torch import rollout

    dtype = getattr(torch, kind)
    arrays = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in (*start(sim), 0.3)]
    q, v = rollout(sim, *arrays[:3], {'friction': arrays[3]})
    assert (q.dtype, v.dtype) == (dtype, dtype)
    weights = [torch.tensor(x, dtype=dtype) for x in costs(sim)]
    ((q * weights[0]).sum() + (v * weights[1]).sum()).backward()
    expected = gradients(sim, {'friction': 0.3})
    for array, gradient in zip(arrays, (*expected[:3], expected[3]['friction']), strict=True):
        scale = np.abs(gradient).max()
        assert array.grad.numpy() == pytest.approx(gradient, abs=relative * scale)


def test_torch_says_what_is_wrong(sim):
    torch = pytest.importorskip('torch', reason='the extra torch is not installed')
    from contact_sim.derivatives.torch import rollout

    q, v, _ = map(torch.tensor, start(sim))
    with pytest.raises(InvalidInput, match='efforts'):
        rollout(sim, q, v, torch.zeros((3, 2)))


@pytest.mark.parametrize('compiled', [False, True])
def test_jax_has_the_gradients_of_the_run(sim, compiled):
    jax = pytest.importorskip('jax', reason='the extra jax is not installed')
    from contact_sim.derivatives.jax import rollout

    with jax.enable_x64(True) if hasattr(jax, 'enable_x64') else jax.experimental.enable_x64():
        weights = costs(sim)

        def cost(q, v, efforts, friction):
            states = rollout(sim, q, v, efforts, {'friction': friction})
            return sum((state * own).sum() for state, own in zip(states, weights, strict=True))

        gradient = jax.grad(cost, argnums=(0, 1, 2, 3))
        found = (jax.jit(gradient) if compiled else gradient)(*start(sim), 0.3)
        expected = gradients(sim, {'friction': 0.3})
        for one, other in zip(found, (*expected[:3], expected[3]['friction']), strict=True):
            assert np.asarray(one) == pytest.approx(other, abs=1e-12 * np.abs(other).max())


@pytest.mark.parametrize('name', ['torch', 'jax'])
def test_a_library_that_is_missing_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, f'contact_sim.derivatives.{name}', raising=False)
    with pytest.raises(ImportError, match=rf'pip install .contact_sim\[{name}\]'):
        importlib.import_module(f'contact_sim.derivatives.{name}')
