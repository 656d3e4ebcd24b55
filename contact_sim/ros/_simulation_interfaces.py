"""The services and the action of simulation_interfaces, where that package is installed.

Releases from 1.0 to 2.1 are served; fields and constants that one lacks are asked for by name.
What makes sense for one robot that cannot be spawned: time, state and the robot as an entity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

import contact_sim
from contact_sim.errors import ContactSimError
from contact_sim.ros._loop import Loop
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._publishers import EVERY
from contact_sim.ros._services import Services, StateControl
from contact_sim.simulation._simulator import Simulator

try:
    from rclpy.action import ActionServer, CancelResponse
    from simulation_interfaces.action import SimulateSteps
    from simulation_interfaces.msg import Result, SimulationState, SimulatorFeatures
    from simulation_interfaces.srv import (
        GetSimulationState,
        GetSimulatorFeatures,
        ResetSimulation,
        SetSimulationState,
        StepSimulation,
    )

    from contact_sim.ros._entities import Entities

    INSTALLED = True
except ImportError:  # the services of standard types are always there
    INSTALLED = False

FEATURES = (
    'NAMED_POSES',
    'ENTITY_CATEGORIES',
    'ENTITY_STATE_GETTING',
    'ENTITY_STATE_SETTING',
    'ENTITY_INFO_GETTING',
    'SIMULATION_RESET',
    'SIMULATION_RESET_TIME',
    'SIMULATION_RESET_STATE',
    'SIMULATION_STATE_GETTING',
    'SIMULATION_STATE_SETTING',
    'SIMULATION_STATE_PAUSE',
    'STEP_SIMULATION_SINGLE',
    'STEP_SIMULATION_MULTIPLE',
    'STEP_SIMULATION_ACTION',
)
"""Names of constants, because their numbers differ between releases."""
FAREWELL = 0.2
"""Wall seconds between the answer to STATE_QUITTING and the end."""


class SimulationInterfaces:
    """Serves simulation_interfaces under the node's name.

    Args:
        node: who serves.
        sim: what is simulated.
        loop: who steps it.
        control: who sets its state.
        services: who takes steps.
        parameters: of the node; with `services_at_root` everything is served without the node's
            name, too.
    """

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        loop: Loop,
        control: StateControl,
        services: Services,
        parameters: ParameterServer,
    ) -> None:
        self._node, self._sim, self._loop = node, sim, loop
        self._control, self._services = control, services
        self._stopped = loop.paused  # at the start, as if STATE_STOPPED had been asked for
        self._ending: Any = None
        self._group = ReentrantCallbackGroup()  # states can be asked for while steps are taken
        entities = Entities(node, sim, loop, control, parameters)
        prefixes = ('~/', '') if parameters.settings[''].services_at_root else ('~/',)
        served = {
            'get_simulator_features': (GetSimulatorFeatures, self._on_get_features),
            'get_simulation_state': (GetSimulationState, self._on_get_state),
            'set_simulation_state': (SetSimulationState, self._on_set_state),
            'step_simulation': (StepSimulation, self._on_step),
            'reset_simulation': (ResetSimulation, self._on_reset),
            **entities.served(),
        }
        for prefix in prefixes:
            for name, (kind, callback) in served.items():
                node.create_service(kind, prefix + name, callback, callback_group=self._group)
        self._actions = [self._steps_action(prefix + 'simulate_steps') for prefix in prefixes]

    # ---------------------------------------------------------------- what and how

    def _on_get_features(self, _: Any, response: Any) -> Any:
        numbers = (getattr(SimulatorFeatures, name, None) for name in FEATURES)
        response.features.features = [number for number in numbers if number is not None]
        response.features.custom_info = (
            f'contact_sim {contact_sim.__version__}, contact model {self._sim.contact_model}; '
            'documentation: docs/services.md'
        )
        return response

    # ---------------------------------------------------------------- states

    @property
    def _state(self) -> int:
        if not self._loop.paused:
            return int(SimulationState.STATE_PLAYING)
        at_start = self._stopped and self._sim.step_count == 0
        return int(SimulationState.STATE_STOPPED if at_start else SimulationState.STATE_PAUSED)

    def _on_get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._state
        response.result.result = Result.RESULT_OK
        return response

    def _on_set_state(self, request: Any, response: Any) -> Any:
        wanted = request.state.state
        action = {
            SimulationState.STATE_STOPPED: self._stop,
            SimulationState.STATE_PLAYING: self._play,
            SimulationState.STATE_PAUSED: self._pause,
            SimulationState.STATE_QUITTING: self._quit,
        }.get(wanted)
        if action is None:
            reason = f'state {wanted} cannot be asked for: there is one world, always loaded'
            return _answer(response, response.INCORRECT_TRANSITION, reason)
        if wanted == self._state:
            reason = f'already in state {wanted}'
            return _answer(response, response.ALREADY_IN_TARGET_STATE, reason)
        if wanted == SimulationState.STATE_PLAYING and self._loop.tally.failure:
            reason = self._loop.tally.failure
            return _answer(response, response.STATE_TRANSITION_ERROR, reason)
        return _attempt(response, action)

    def _play(self) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(False))
        self._stopped = False

    def _pause(self) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(True))
        self._stopped = False

    def _stop(self) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(True))
        self._control.reset(time_too=True)
        self._stopped = True

    def _quit(self) -> None:
        """End once the answer is on its way."""
        context = self._node.context
        self._ending = self._node.create_timer(FAREWELL, context.try_shutdown)

    # ---------------------------------------------------------------- steps

    async def _on_step(self, request: Any, response: Any) -> Any:
        """Answer after the last step has been published."""
        if not self._loop.paused:
            return _answer(response, Result.RESULT_OPERATION_FAILED, 'not paused')
        reason = await self._services.take_steps(request.steps)
        code = Result.RESULT_OPERATION_FAILED if reason else Result.RESULT_OK
        return _answer(response, code, reason)

    def _steps_action(self, name: str) -> Any:
        return ActionServer(
            self._node, SimulateSteps, name, self._on_steps,
            cancel_callback=lambda _: CancelResponse.ACCEPT, callback_group=self._group,
            feedback_pub_qos_profile=EVERY,
        )  # fmt: skip

    async def _on_steps(self, goal: Any) -> Any:
        """Take steps one by one, saying so after each."""
        outcome = SimulateSteps.Result()
        if not self._loop.paused:
            goal.abort()
            return _answer(outcome, Result.RESULT_OPERATION_FAILED, 'not paused')
        total = goal.request.steps
        feedback = SimulateSteps.Feedback()

        def after_step(left: int) -> bool:
            feedback.completed_steps, feedback.remaining_steps = total - left, left
            goal.publish_feedback(feedback)
            return not goal.is_cancel_requested

        reason = await self._services.take_steps(total, after_step)
        if not reason:
            goal.succeed()
            return _answer(outcome, Result.RESULT_OK)
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return _answer(outcome, Result.RESULT_OPERATION_FAILED, reason)

    # ---------------------------------------------------------------- resets

    def _on_reset(self, request: Any, response: Any) -> Any:
        scope = request.scope
        if scope in (request.SCOPE_DEFAULT, request.SCOPE_ALL):
            return _attempt(response, lambda: self._control.reset(time_too=True))
        known = request.SCOPE_TIME | request.SCOPE_STATE
        if scope & ~known:
            reason = f'scope {scope}: only TIME ({request.SCOPE_TIME}), STATE '
            reason += f'({request.SCOPE_STATE}) and ALL; nothing is ever spawned'
            return _answer(response, Result.RESULT_FEATURE_UNSUPPORTED, reason)
        if scope & request.SCOPE_STATE:
            both = bool(scope & request.SCOPE_TIME)
            return _attempt(response, lambda: self._control.reset(time_too=both))
        return _attempt(response, self._control.reset_time)


def _answer(response: Any, code: int, reason: str = '') -> Any:
    response.result.result, response.result.error_message = code, reason
    return response


def _attempt(response: Any, action: Callable[[], None]) -> Any:
    """Do something and answer whether it worked."""
    try:
        action()
    except ContactSimError as error:
        return _answer(response, Result.RESULT_OPERATION_FAILED, str(error))
    return _answer(response, Result.RESULT_OK)
