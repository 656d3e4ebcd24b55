"""Public names at their old places: they work for one release, with a warning."""

import importlib

import pytest

from contact_sim import _deprecated

OLD = {
    'arrays.fields': 'Sizes',
    'arrays.step_data': 'StepData',
    'collision.kinds': 'Ground',
    'compare.runs': 'Measures Run Trace compare',
    'compare.scenarios': 'Scenario scenario_of',
    'constraints.resolved': 'ConstraintTable',
    'contact.blocks': 'Cone Interval',
    'contact.residuals': 'EnergyBalance LawResiduals Residuals',
    'contact.solution': 'ContactSolution SolverReport SolverStatus',
    'contact.workspace': 'Workspace',
    'contact_models.hybrid.model': 'HybridParameters',
    'contact_models.protocol': 'ContactModel Stepper',
    'contact_models.time_stepping.anitescu': 'AnitescuParameters',
    'contact_models.time_stepping.compliant': 'CompliantParameters',
    'contact_models.time_stepping.lcp': 'LcpParameters',
    'contact_models.time_stepping.ncp': 'NcpParameters',
    'contact_models.time_stepping.null_space': 'NullSpaceParameters',
    'contact_models.time_stepping.sap': 'SapParameters',
    'contact_models.time_stepping.stepper': 'LawSettings',
    'contact_models.time_stepping.todorov': 'TodorovParameters',
    'control.base_motion': 'BaseGains BaseReference',
    'control.inverse_dynamics': 'Answer',
    'control.stance': 'BaseMotion',
    'control.trot': 'TrotTuning',
    'maximal.bodies': 'BodyState',
    'maximal.contact': 'ContactForces',
    'maximal.mechanism': 'Mechanism',
    'maximal.report': 'MaximalReport',
    'maximal.rows': 'JointRows PlacedRows',
    'replay.export.run': 'Exported Targets export',
    'replay.recording': 'Chunk',
    'replay.repeat': 'PlayedStep',
    'replay.series': 'Series',
    'replay.survey': 'Event Survey survey',
    'replay.timeline': 'Moment Timeline',
    'robot.actuation': 'JointCommand holding',
    'robot.actuators': 'Actuators',
    'robot.body_points': 'Approximation',
    'robot.closed_loops': 'ClosedLoops',
    'robot.coordinates': 'Coordinates',
    'robot.parts': 'RobotPart',
    'robot.position_limits': 'PositionLimit',
    'robot.solids': 'Collisions Solid',
    'ros.controllers.base': 'Controller ControllerNode run',
    'sensors.contact_flags': 'Switched',
    'sensors.line': 'Sample Sensor',
    'sensors.part_report': 'PartContacts PartPairs PartRecord',
    'simulation.constraint_report': 'ConstraintReport',
    'simulation.contact_report': 'ContactReport',
    'simulation.foot_report': 'ContactGroups FootReport',
    'simulation.observer': 'StepObserver',
    'simulation.pair_report': 'PairReport',
    'simulation.report': 'StepContext StepReport',
    'simulation.worlds': 'Rollout',
    'solvers.springs': 'LinearSprings',
    'view.camera': 'Camera',
    'view.embedded': 'MovingScene',
    'view.layers': 'Switches',
    'view.live': 'LiveSession',
    'view.motions': 'Motions Running',
    'view.page': 'Page',
    'view.saved': 'save_clip save_page',
    'view.scene': 'Scene',
    'view.server': 'page_server',
    'view.session': 'Chosen Offers Session Shown',
}
"""Old module: the names of it that the API reference of 0.2 listed."""


@pytest.mark.parametrize('module', OLD)
def test_names_work_at_their_old_place_with_a_warning(module):
    old = importlib.import_module(f'contact_sim.{module}')
    for name in OLD[module].split():
        with pytest.warns(DeprecationWarning, match=f'{module}.{name} is deprecated'):
            value = getattr(old, name)
        assert value.__module__.startswith('contact_sim.')


def test_every_old_module_leads_somewhere():
    for module, place in _deprecated.MODULES.items():
        assert importlib.import_module(f'contact_sim.{module}').__name__ == f'contact_sim.{module}'
        assert importlib.import_module(f'contact_sim.{place}').__name__ == f'contact_sim.{place}'


def test_an_unknown_name_of_an_old_module_is_an_attribute_error():
    old = importlib.import_module('contact_sim.simulation.report')
    with pytest.raises(AttributeError):
        _ = old.nothing
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module('contact_sim.simulation.nothing')
