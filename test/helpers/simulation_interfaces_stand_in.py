"""Stand-ins for the Python classes of simulation_interfaces, which has no wheel, by release.

What the node uses of the messages, services and the action, in their own notation: fields with
their types, constants with their values, `---` between the parts. They are as strict as the
classes that rosidl generates: unknown fields and values of another type are refused.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from geometry_msgs.msg import Accel, Pose, Twist, Vector3
from std_msgs.msg import Header

MESSAGES = {
    'Result': """uint8 RESULT_FEATURE_UNSUPPORTED=0, uint8 RESULT_OK=1, uint8 RESULT_NOT_FOUND=2,
        uint8 RESULT_INCORRECT_STATE=3, uint8 RESULT_OPERATION_FAILED=4,
        uint8 result, string error_message""",
    'Bounds': """uint8 TYPE_EMPTY=0, uint8 TYPE_BOX=1, uint8 TYPE_CONVEX_HULL=2,
        uint8 TYPE_SPHERE=3, uint8 type, Vector3[] points""",
    'EntityCategory': """uint8 CATEGORY_OBJECT=0, uint8 CATEGORY_ROBOT=1, uint8 CATEGORY_HUMAN=2,
        uint8 CATEGORY_DYNAMIC_OBJECT=4, uint8 CATEGORY_STATIC_OBJECT=5, uint8 category""",
    'TagsFilter': """string[] tags, uint8 FILTER_MODE_ANY=0, uint8 FILTER_MODE_ALL=1,
        uint8 filter_mode""",
    'EntityFilters': 'string filter, EntityCategory[] categories, TagsFilter tags, Bounds bounds',
    'EntityInfo': 'EntityCategory category, string description, string[] tags',
    'EntityState': 'Header header, Pose pose, Twist twist, Accel acceleration',
    'NamedPose': 'string name, string description, string[] tags, Pose pose',
    'SimulationState': """uint8 STATE_STOPPED=0, uint8 STATE_PLAYING=1, uint8 STATE_PAUSED=2,
        uint8 STATE_QUITTING=3, uint8 STATE_NO_WORLD=4, uint8 STATE_LOADING_WORLD=5,
        uint8 state""",
    'Resource': 'string uri, string resource_string',
    'WorldResource': 'string name, Resource world_resource, string description, string[] tags',
    'SimulatorFeatures': """uint8 NAMED_POSES=2, uint8 POSE_BOUNDS=3, uint8 ENTITY_TAGS=4,
        uint8 ENTITY_BOUNDS=5, uint8 ENTITY_BOUNDS_BOX=6, uint8 ENTITY_INFO_SETTING=13,
        uint8 WORLD_INFO_GETTING=44, uint8 ENTITY_CATEGORIES=8,
        uint8 ENTITY_STATE_GETTING=10, uint8 ENTITY_STATE_SETTING=11,
        uint8 ENTITY_INFO_GETTING=12, uint8 SIMULATION_RESET=20, uint8 SIMULATION_RESET_TIME=21,
        uint8 SIMULATION_RESET_STATE=22, uint8 SIMULATION_STATE_GETTING=24,
        uint8 SIMULATION_STATE_SETTING=25, uint8 SIMULATION_STATE_PAUSE=26,
        uint8 STEP_SIMULATION_SINGLE=31, uint8 STEP_SIMULATION_MULTIPLE=32,
        uint8 STEP_SIMULATION_ACTION=33, uint16[] features, string[] spawn_formats,
        string custom_info""",
}
"""Those that are made of others stand behind them."""
SERVICES = {
    'GetEntities': 'EntityFilters filters --- Result result, string[] entities',
    'GetEntitiesStates': """EntityFilters filters ---
        Result result, string[] entities, EntityState[] states""",
    'GetCurrentWorld': '--- uint8 NO_WORLD_LOADED=101, Result result, WorldResource world',
    'GetEntityBounds': 'string entity --- Result result, Bounds bounds',
    'GetNamedPoseBounds': 'string name --- Result result, Bounds bounds',
    'SetEntityInfo': 'string entity, EntityInfo info --- Result result',
    'GetEntityInfo': 'string entity --- Result result, EntityInfo info',
    'GetEntityState': 'string entity --- Result result, EntityState state',
    'GetNamedPoses': 'TagsFilter tags --- Result result, NamedPose[] poses',
    'GetSimulationState': '--- SimulationState state, Result result',
    'GetSimulatorFeatures': '--- SimulatorFeatures features',
    'ResetSimulation': """uint8 SCOPE_DEFAULT=0, uint8 SCOPE_TIME=1, uint8 SCOPE_STATE=2,
        uint8 SCOPE_SPAWNED=4, uint8 SCOPE_ALL=255, uint8 scope --- Result result""",
    'SetEntityState': """string entity, EntityState state,
        bool set_pose, bool set_twist, bool set_acceleration ---
        uint8 INVALID_POSE=101, Result result""",
    'SetSimulationState': """SimulationState state --- uint8 ALREADY_IN_TARGET_STATE=101,
        uint8 STATE_TRANSITION_ERROR=102, uint8 INCORRECT_TRANSITION=103, Result result""",
    'StepSimulation': 'uint64 steps --- Result result',
}
ACTIONS = {
    'SimulateSteps': """uint64 steps --- Result result ---
        uint64 completed_steps, uint64 remaining_steps"""
}
FLAGS = ('set_pose', 'set_twist', 'set_acceleration')
NO_CODE, NO_WORLDS = ('INVALID_POSE',), ('STATE_NO_WORLD', 'STATE_LOADING_WORLD')
LACKING = {
    '1.0.0': (*FLAGS, *NO_CODE, *NO_WORLDS, 'WORLD_INFO_GETTING', 'GetCurrentWorld'),
    '1.5.0': (*FLAGS, *NO_CODE),
    '1.5.1': FLAGS,  # of Jazzy
    '1.6.0': (*FLAGS, *NO_CODE),
    '1.6.1': FLAGS,  # of Kilted
    '2.1.0': (),
}
"""Fields, constants and services of the above that a release does not have."""
SCALARS = {'bool': bool, 'string': str} | dict.fromkeys(('uint8', 'uint16', 'uint64'), int)
STANDARD = {kind.__name__: kind for kind in (Accel, Header, Pose, Twist, Vector3)}
PACKAGE = 'simulation_interfaces'


def stand_in(release: str) -> dict[str, ModuleType]:
    """Return the modules of a release by their names, as in sys.modules."""
    names = (PACKAGE, f'{PACKAGE}.msg', f'{PACKAGE}.srv', f'{PACKAGE}.action')
    modules = {name: ModuleType(name) for name in names}
    known: dict[str, type] = dict(STANDARD)
    for name, text in MESSAGES.items():
        known[name] = _message(name, text, known, LACKING[release])
        setattr(modules[f'{PACKAGE}.msg'], name, known[name])
    for folder, interfaces, parts in (
        ('srv', SERVICES, ('Request', 'Response')),
        ('action', ACTIONS, ('Goal', 'Result', 'Feedback')),
    ):
        for name, text in interfaces.items():
            if name in LACKING[release]:
                continue
            classes = {
                part: _message(f'{name}_{part}', said, known, LACKING[release])
                for part, said in zip(parts, text.split('---'), strict=True)
            }
            setattr(modules[f'{PACKAGE}.{folder}'], name, type(name, (), classes))
    return modules


def _message(name: str, text: str, known: dict[str, type], lacking: tuple[str, ...]) -> type:
    constants: dict[str, Any] = {}
    fields: dict[str, tuple[type, bool]] = {}
    for entry in filter(None, (entry.strip() for entry in text.split(','))):
        kind, rest = entry.split(maxsplit=1)
        what, equals, value = rest.partition('=')
        if what in lacking:
            continue
        if equals:
            constants[what] = int(value)
        else:
            one = kind.removesuffix('[]')
            fields[what] = (SCALARS.get(one) or known[one], kind != one)

    def make(self: Any, **values: Any) -> None:
        assert values.keys() <= fields.keys(), values
        for field, (kind, is_list) in fields.items():
            setattr(self, field, values.get(field, [] if is_list else kind()))

    def assign(self: Any, field: str, value: Any) -> None:
        if field not in fields:
            raise AttributeError(f'{name} has no field {field!r}')
        kind, is_list = fields[field]
        assert isinstance(value, list | tuple) or not is_list, (field, value)
        items = value if is_list else [value]
        assert all(isinstance(item, kind) for item in items), (field, value)
        object.__setattr__(self, field, value)

    return type(name, (), {'__init__': make, '__setattr__': assign, **constants})
