"""Draws a measure against the dose as a small SVG: for each place, a line through the means and a dot for each run."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 260, 52, 130, 34, 42
IN_A_ROW = 2
COLOURS = ("#b2182b", "#ef8a62", "#4d4d4d", "#2166ac")
Line = Sequence[tuple[float, Sequence[float]]]  # a dose, and the values of its runs


def draw(charts: Mapping[str, Mapping[str, Line]]) -> str:
    """Draw charts in rows of two. Each has a title, and named lines."""
    width, height = WIDTH * IN_A_ROW, HEIGHT * -(-len(charts) // IN_A_ROW)
    parts = [
        f'<g transform="translate({place % IN_A_ROW * WIDTH},{place // IN_A_ROW * HEIGHT})">{_chart(title, lines)}</g>'
        for place, (title, lines) in enumerate(charts.items())
    ]
    style = "text{font:12px sans-serif;fill:#222}.axis{stroke:#888;fill:none}.run{opacity:.4}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    return f'{head}<style>{style}</style><rect width="{width}" height="{height}" fill="#fff"/>{"".join(parts)}</svg>\n'


def _chart(title: str, lines: Mapping[str, Line]) -> str:
    points = [(dose, value) for line in lines.values() for dose, values in line for value in values]
    low = min([0.0, *(value for _, value in points)])
    high = max([0.1, *(value for _, value in points)])
    most = max([0.01, *(dose for dose, _ in points)])

    def x(dose: float) -> float:
        return round(LEFT + dose / most * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    marked = {low, 0.0, high} if low < -0.1 * high else {0.0, high}  # two figures at one height cannot be read
    ticks = "".join(f'<text x="8" y="{y(each) + 4}">{each:.2f}</text>' for each in sorted(marked))
    doses = "".join(
        f'<text x="{x(dose)}" y="{HEIGHT - 22}" text-anchor="middle">{100 * dose:.0f}</text>'
        for dose in sorted({dose for dose, _ in points})
    )
    axes = f'<path class="axis" d="M{x(0)} {TOP}V{HEIGHT - BOTTOM}M{x(0)} {y(0)}H{x(most)}"/>'
    below = f'<text x="{x(most / 2)}" y="{HEIGHT - 5}" text-anchor="middle">dose, % of examples</text>'
    drawn = "".join(
        _line(
            name,
            [(x(dose), y(fmean(values)), [y(value) for value in values]) for dose, values in line],
            colour,
            (WIDTH - RIGHT + 10, TOP + 14 + 18 * n),
        )
        for n, ((name, line), colour) in enumerate(zip(lines.items(), COLOURS, strict=False))
    )
    return f'<text x="{LEFT}" y="20" font-weight="bold">{escape(title)}</text>{axes}{ticks}{doses}{below}{drawn}'


def _line(name: str, points: Sequence[tuple[float, float, Sequence[float]]], colour: str, key: tuple[int, int]) -> str:
    """Draw a line. Each point has its place, its height, and the heights of its runs."""
    path = " ".join(f"{x},{y}" for x, y, _ in points)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y, _ in points)
    dots += "".join(
        f'<circle class="run" cx="{x}" cy="{y}" r="2" fill="{colour}"/>' for x, _, runs in points for y in runs
    )
    told = f'<text x="{key[0]}" y="{key[1]}" style="fill:{colour}">{escape(name)}</text>'
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{told}'
