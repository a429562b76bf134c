"""The few SVG elements that timeline.py draws with. Escapes every name; no scripts."""

from __future__ import annotations

import html
import re

INK = "#202124"
NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(words: str) -> str:
    """Foreign text as XML: escaped, on one line, without characters that XML forbids."""
    return html.escape(NOT_XML.sub("?", " ".join(words.split())))


def rect(
    x: float, y: float, width: float, height: float, fill: str, *, tip: str = "", edge: bool = False
) -> str:
    """A filled rectangle; `tip` shows when the pointer is on it."""
    place = f'x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{fill}"'
    stroke = f' stroke="{INK}" stroke-width="0.4"' if edge else ""
    if not tip:
        return f'<rect {place}{stroke} pointer-events="none"/>'
    return f"<rect {place}{stroke}><title>{text(tip)}</title></rect>"


def label(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: float = 11,
    bold: bool = False,
    fill: str = INK,
    halo: bool = False,
) -> str:
    """A line of text; a halo keeps it legible on colours and patterns."""
    style = f'font-size="{size:g}" text-anchor="{anchor}" fill="{fill}"'
    if bold:
        style += ' font-weight="bold"'
    if halo:
        style += ' stroke="#ffffff" stroke-opacity="0.85" stroke-width="3" paint-order="stroke"'
    return f'<text x="{x:.2f}" y="{y:.2f}" {style} pointer-events="none">{text(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A thin line."""
    return (
        f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{colour}" '
        'stroke-width="1"/>'
    )


def hatching(name: str) -> str:
    """Define a fill of slanted lines on a lightened ground, used as url(#name)."""
    return (
        f'<defs><pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="6" height="6" fill="#ffffff" '
        f'fill-opacity="0.55"/><line x1="0" y1="0" x2="0" y2="6" stroke="{INK}" '
        'stroke-opacity="0.35" stroke-width="1.5"/></pattern></defs>'
    )


def document(width: int, height: int, title: str, parts: list[str]) -> str:
    """The whole file, on white."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif">'
    )
    ground = rect(0, 0, width, height, "#ffffff")
    return "\n".join([head, f"<title>{text(title)}</title>", ground, *parts, "</svg>", ""])
