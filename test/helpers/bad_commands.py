"""Commands of go1 that are refused: case to (command, pattern of the refusal)."""

import math

from contact_sim import load_robot

JOINTS = list(load_robot('go1').joint_names)
NAN, INF = math.nan, math.inf

BAD_JOINT_STATES = {
    'no names': (([], [], [], []), 'without joint names'),
    'nothing commanded': ((JOINTS[:1], [], [], []), 'without position, velocity and effort'),
    'unknown joint': ((['FL_knee'], [1.0], [], []), "unknown joint 'FL_knee'.*known: FL_hip"),
    'one unknown among many': (([*JOINTS, 'tail'], [0.0] * 13, [], []), "'tail'"),
    'joint twice': ((JOINTS[:2] + JOINTS[:1], [0.0] * 3, [], []), "'FL_hip_joint' named twice"),
    'too few positions': ((JOINTS, [0.0] * 11, [], []), '11 values of position for 12 joints'),
    'too many velocities': ((JOINTS, [], [0.0] * 13, []), '13 values of velocity'),
    'one effort for all': ((JOINTS, [], [], [1.0]), '1 values of effort'),
    'NaN position': ((JOINTS[:2], [0.0, NAN], [], []), "position of joint 'FL_thigh_joint' = nan"),
    'infinite velocity': ((JOINTS[:1], [], [INF], []), "velocity of joint 'FL_hip_joint' = inf"),
    'NaN effort': ((JOINTS[:1], [0.0], [0.0], [NAN]), "effort of joint 'FL_hip_joint' = nan"),
    'absurd position': ((JOINTS[:1], [1e300], [], []), "position of joint 'FL_hip_joint' = 1e"),
    'negative infinity': ((JOINTS[:1], [], [], [-INF]), '-inf'),
}
BAD_EFFORTS = {
    'empty': ([], '0 efforts: expected 12 in the order FL_hip_joint'),
    'too few': ([0.0] * 11, '11 efforts'),
    'too many': ([0.0] * 13, '13 efforts'),
    'NaN': ([0.0] * 11 + [NAN], "effort of joint 'RR_calf_joint' = nan"),
    'infinity': ([INF] + [0.0] * 11, "effort of joint 'FL_hip_joint' = inf"),
}
