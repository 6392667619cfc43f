"""Small line charts as inline SVG: a report is one file that opens anywhere, without scripts or network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 440, 190, 52, 26, 10


@dataclass(frozen=True)
class Series:
    """One line: (x, y) points in order of x."""

    label: str
    colour: str
    points: Sequence[tuple[float, float]]


def line_chart(series: Sequence[Series]) -> str:
    """An SVG element with axes, the first and last tick of each, and one line per series."""
    points = [point for line in series for point in line.points]
    if not points:
        return "<p class='none'>no data</p>"
    x_low, x_high = _range([x for x, _ in points])
    y_low, y_high = _range([y for _, y in points])

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - 10)
        up = HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - BOTTOM - TOP)
        return across, up

    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', _axes(x_low, x_high, y_low, y_high)]
    for line in series:
        spots = [place(x, y) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        parts.append(f'<polyline fill="none" stroke="{line.colour}" stroke-width="2" points="{path}"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{line.colour}"/>' for x, y in spots]
    return "".join([*parts, "</svg>"])


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low < 1e-9:
        return low - 0.5, high + 0.5
    margin = (high - low) * 0.05
    return low - margin, high + margin


def _axes(x_low: float, x_high: float, y_low: float, y_high: float) -> str:
    floor = HEIGHT - BOTTOM
    lines = [
        f'<path d="M{LEFT},{TOP} V{floor} H{WIDTH - 10}" fill="none" stroke="#999"/>',
        _text(LEFT - 6, floor, f"{y_low:.3g}", "end"),
        _text(LEFT - 6, TOP + 10, f"{y_high:.3g}", "end"),
        _text(LEFT, HEIGHT - 8, f"{x_low:.3g}", "start"),
        _text(WIDTH - 12, HEIGHT - 8, f"{x_high:.3g}", "end"),
    ]
    return "".join(lines)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="11" fill="#666" text-anchor="{anchor}">{text}</text>'
