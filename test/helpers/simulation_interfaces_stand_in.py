"""Stand-ins for the Python classes of simulation_interfaces, which has no wheel, by release.

What the node uses of the messages, services and the action, in their own notation: fields with
their types, constants with their values, `---` between the parts. They are as strict as the
classes that rosidl generates: unknown fields and values of another type are refused.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from geometry_msgs.msg import Accel, Pose, PoseStamped, Twist, Vector3
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
    'Spawnable': 'Resource entity_resource, string description, Bounds spawn_bounds',
    'SpawnEntity': '{entity}',
    'SpawnResult': '{spawn_codes}, Result result, string entity_name',
    'SimulatorFeatures': """uint8 SPAWNING=0, uint8 DELETING=1, uint8 SPAWNING_RESOURCE_STRING=9,
        uint8 SPAWNABLES=14, uint8 SIMULATION_RESET_SPAWNED=23, uint8 WORLD_LOADING=40,
        uint8 WORLD_RESOURCE_STRING=41, uint8 WORLD_TAGS=42, uint8 WORLD_UNLOADING=43,
        uint8 AVAILABLE_WORLDS=45, uint8 SPAWNING_ENTITIES=50,
        uint8 NAMED_POSES=2, uint8 POSE_BOUNDS=3, uint8 ENTITY_TAGS=4,
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
    'SpawnEntity': '{entity} --- {spawn_codes}, Result result, string entity_name',
    'SpawnEntities': """SpawnEntity[] spawn_requests ---
        uint8 ENTITIES_SPAWN_FAILED=150, Result result, SpawnResult[] results""",
    'DeleteEntity': 'string entity --- Result result',
    'GetSpawnables': 'string[] sources --- Result result, Spawnable[] spawnables',
    'GetAvailableWorlds': """string[] additional_sources, TagsFilter filter, bool offline_only,
        bool continue_on_error --- uint8 DEFAULT_SOURCES_FAILED=101, Result result,
        WorldResource[] worlds""",
    'LoadWorld': """Resource world_resource, bool fail_on_unsupported_element,
        bool ignore_missing_or_unsupported_assets --- uint8 UNSUPPORTED_FORMAT=101,
        uint8 NO_RESOURCE=102, uint8 RESOURCE_PARSE_ERROR=103, uint8 MISSING_ASSETS=104,
        uint8 UNSUPPORTED_ASSETS=105, uint8 UNSUPPORTED_ELEMENTS=106, Result result,
        WorldResource world""",
    'UnloadWorld': '--- uint8 NO_WORLD_LOADED=101, Result result',
}
ENTITY = """string name, bool allow_renaming, Resource entity_resource, string entity_namespace,
        PoseStamped initial_pose"""
SPAWN_CODES = """uint8 NAME_NOT_UNIQUE=101, uint8 NAME_INVALID=102, uint8 UNSUPPORTED_FORMAT=103,
        uint8 NO_RESOURCE=104, uint8 NAMESPACE_INVALID=105, uint8 RESOURCE_PARSE_ERROR=106,
        uint8 MISSING_ASSETS=107, uint8 UNSUPPORTED_ASSETS=108, uint8 INVALID_POSE=109"""
BEFORE_2 = {'SpawnEntity': 'entity_resource', 'LoadWorld': 'world_resource',
            'Spawnable': 'entity_resource'}  # fmt: skip
"""Services and messages that had the fields of a resource themselves."""
ACTIONS = {
    'SimulateSteps': """uint64 steps --- Result result ---
        uint64 completed_steps, uint64 remaining_steps"""
}
WORLDS = ('GetCurrentWorld', 'GetAvailableWorlds', 'LoadWorld', 'UnloadWorld')
WORLD_FEATURES = ('WORLD_INFO_GETTING', 'WORLD_LOADING', 'WORLD_RESOURCE_STRING', 'WORLD_TAGS',
                  'WORLD_UNLOADING', 'AVAILABLE_WORLDS')  # fmt: skip
SEVERAL = ('SpawnEntities', 'SpawnResult', 'SPAWNING_ENTITIES')
FLAGS = ('set_pose', 'set_twist', 'set_acceleration')
NO_CODE, NO_WORLDS = ('INVALID_POSE',), ('STATE_NO_WORLD', 'STATE_LOADING_WORLD')
LACKING = {
    '1.0.0': (*FLAGS, *NO_CODE, *NO_WORLDS, *WORLDS, *WORLD_FEATURES, *SEVERAL),
    '1.5.0': (*FLAGS, *NO_CODE),
    '1.5.1': FLAGS,  # of Jazzy
    '1.6.0': (*FLAGS, *NO_CODE),
    '1.6.1': FLAGS,  # of Kilted
    '2.1.0': (),
}
"""Fields, constants and services of the above that a release does not have."""
SCALARS = {'bool': bool, 'string': str} | dict.fromkeys(('uint8', 'uint16', 'uint64'), int)
STANDARD = {kind.__name__: kind for kind in (Accel, Header, Pose, PoseStamped, Twist, Vector3)}
PACKAGE = 'simulation_interfaces'


def stand_in(release: str) -> dict[str, ModuleType]:
    """Return the modules of a release by their names, as in sys.modules."""
    names = (PACKAGE, f'{PACKAGE}.msg', f'{PACKAGE}.srv', f'{PACKAGE}.action')
    modules = {name: ModuleType(name) for name in names}
    known: dict[str, type] = dict(STANDARD)
    for name, text in MESSAGES.items():
        if name in LACKING[release]:
            continue
        text = _of_release(release, name, text, in_message=True)
        known[name] = _message(name, text, known, LACKING[release])
        setattr(modules[f'{PACKAGE}.msg'], name, known[name])
    for folder, interfaces, parts in (
        ('srv', SERVICES, ('Request', 'Response')),
        ('action', ACTIONS, ('Goal', 'Result', 'Feedback')),
    ):
        for name, text in interfaces.items():
            if name in LACKING[release]:
                continue
            text = _of_release(release, name, text)
            classes = {
                part: _message(f'{name}_{part}', said, known, LACKING[release])
                for part, said in zip(parts, text.split('---'), strict=True)
            }
            setattr(modules[f'{PACKAGE}.{folder}'], name, type(name, (), classes))
    return modules


def _of_release(release: str, name: str, text: str, in_message: bool = False) -> str:
    """Return a definition as a release has it."""
    text = text.format(entity=ENTITY, spawn_codes=SPAWN_CODES)
    kept = release >= '2' or (in_message and name == 'SpawnEntity')
    if kept or name not in BEFORE_2:
        return text
    fields = 'string uri' + (', string resource_string' if name != 'Spawnable' else '')
    return text.replace(f'Resource {BEFORE_2[name]}', fields)


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
