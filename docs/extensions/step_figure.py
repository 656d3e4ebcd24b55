"""Draw docs/step.svg, the step as a picture: `make generate` does, too."""

from __future__ import annotations

from html import escape
from pathlib import Path

STAGES = (
    ('begin_step', 'the state becomes the start, commands become efforts', 'τ', 'actuators'),
    ('free_motion', 'the robot without contact', 'v_f = v + h M̂⁻¹ (Sᵀτ − nle)', 'theory 0, 4.1'),
    (
        'contact_rows',
        'rows of contacts, limits, dry friction',
        'J,  u_f = J v_f,  b',
        'theory 4.3',
    ),
    ('next_problem', 'active blocks of one island', 'G = J M̂⁻¹ Jᵀ,  g = u_f + b', 'theory 0'),
    (
        'solve_<law>',
        'the one stage that is the law’s own',
        'λ = law(G, g, μ)',
        'theory 2.1 to 2.12',
    ),
    ('apply_impulses', 'all robots move with the impulses', 'v⁺ = v_f + M̂⁻¹ Jᵀ λ', 'theory 0'),
    ('integrate', 'on the manifold of the floating base', 'q⁺ = q ⊕ h v⁺', 'theory 2.0'),
    ('place_and_detect', 'what belongs to q⁺: M, contact points', 'φ, n at q⁺', 'theory 4.1, 4.2'),
)
"""Name, meaning, equation and source of every stage, in order."""
AGAIN = ('apply_impulses', 'next_problem')
AGAIN_TEXT = (
    'a contact left out',
    'would close, or',
    'restitution would',
    'create energy',
    '(theory 2.8)',
)
ARRAYS = (
    ('step data', 'what snapshots', 'and reports copy'),
    ('work', 'kinematics, active', 'rows, scratch'),
    ('constants', 'robot, ground,', 'law, gains'),
)

WIDTH, LEFT, BOX, HEIGHT, GAP, TOP = 860, 70, 620, 50, 18, 130
INK, LINE, FILL, ACCENT = '#1b2733', '#5b6b7a', '#eef3f8', '#b34700'


def text(x: float, y: float, words: str, style: str = '') -> str:
    """Return a line of text that begins at (x, y) [px]."""
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, colour: str = FILL) -> str:
    """Return a rectangle with its corner at (x, y) [px]."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" '
        f'fill="{colour}" stroke="{LINE}"/>'
    )


def arrow(path: str, colour: str = LINE, dashes: str = '') -> str:
    """Return an arrow along an SVG path."""
    style = f' stroke-dasharray="{dashes}"' if dashes else ''
    return f'<path d="{path}" fill="none" stroke="{colour}" marker-end="url(#tip)"{style}/>'


def top_of(stage: int) -> float:
    """Return the upper edge of a stage's box [px]."""
    return TOP + stage * (HEIGHT + GAP)


def arrays() -> list[str]:
    """Return the band of arrays that every stage takes its views from."""
    width = (BOX - 2 * GAP) / 3
    parts = [text(LEFT, 26, 'the arrays of a world: numbers, indices, layout', 'class="small"')]
    for k, (name, *lines) in enumerate(ARRAYS):
        x = LEFT + k * (width + GAP)
        parts += [box(x, 36, width, 62, '#ffffff'), text(x + 10, 54, name, 'class="name"')]
        parts += [
            text(x + 10, 72 + 17 * row, line, 'class="small"') for row, line in enumerate(lines)
        ]
    return parts


def stages() -> list[str]:
    """Return the boxes of the stages and the arrows between them."""
    parts = []
    for k, (name, meaning, equation, source) in enumerate(STAGES):
        y = top_of(k)
        own = name.startswith('solve')
        parts += [
            box(LEFT, y, BOX, HEIGHT, '#fff1e6' if own else FILL),
            text(LEFT + 12, y + 21, name, 'class="name"'),
            text(LEFT + 12, y + 40, meaning, 'class="small"'),
            text(LEFT + BOX - 12, y + 21, equation, 'text-anchor="end"'),
            text(LEFT + BOX - 12, y + 40, source, 'class="small" text-anchor="end"'),
        ]
        if k:
            parts.append(arrow(f'M {LEFT + 40} {y - GAP} V {y - 2}'))
    return parts


def loops() -> list[str]:
    """Return the way back to the next problem and that to the next step."""
    names = [name for name, *_ in STAGES]
    start, end = (top_of(names.index(name)) + HEIGHT / 2 for name in AGAIN)
    right, out = LEFT + BOX, LEFT + BOX + 24
    first, last = top_of(0) + HEIGHT / 2, top_of(len(STAGES) - 1) + HEIGHT / 2
    parts = [
        arrow(f'M {right} {start} H {out} V {end} H {right + 3}', ACCENT),
        arrow(f'M {LEFT} {last} H {LEFT - 26} V {first} H {LEFT - 3}', LINE, '5 4'),
    ]
    middle = (start + end) / 2 - 8 * len(AGAIN_TEXT) + 8
    parts += [
        text(out + 10, middle + 17 * row, line, 'class="small"')
        for row, line in enumerate(AGAIN_TEXT)
    ]
    x, y = LEFT - 34, (first + last) / 2
    turned = f'class="small" text-anchor="middle" transform="rotate(-90 {x} {y})"'
    return [*parts, text(x, y, 'the next step', turned)]


def drawing() -> str:
    """Return the picture as SVG."""
    height = top_of(len(STAGES)) + 6
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="15" fill="{INK}">',
        '<title>The stages of one step</title>',
        '<style>.name{font-family:DejaVu Sans Mono,monospace;font-weight:bold}'
        '.small{font-size:13px}</style>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z" fill="{LINE}"/></marker>'
        '</defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    return '\n'.join([*head, *arrays(), *stages(), *loops(), '</svg>']) + '\n'


if __name__ == '__main__':
    Path(__file__).parents[1].joinpath('step.svg').write_text(drawing(), encoding='utf-8')
