"""Settings of all tests."""

from hypothesis import settings

# A first call may compile a kernel, and a shared machine may pause: time is no failure here.
settings.register_profile('contact_sim', deadline=None)
settings.load_profile('contact_sim')

pytest_plugins = ['contact_sim.testing']
