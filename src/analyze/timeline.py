"""timeline.svg: one window's host operators and device executions, with the gaps shaded.

Called by pictures.py. Hand-written SVG without scripts, 1200 x 300. Host and device share one axis
only when their times come from one clock; simulated device time never does.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

from . import svg

WIDTH, HEIGHT = 1200, 300
LEFT, RIGHT = 88, 1184
PLOT = RIGHT - LEFT
LANE_HEIGHT = 64
STRIP = 19  # at the top of a lane, for the word SIMULATED
TOPS = (58, 176)  # of the two lanes
LEGEND = 284
MOST_BOXES = 600
THIN = 0.8  # px; narrower neighbours are drawn as one
SEEN = 0.3  # px; narrower gaps are not drawn
LETTER = 6.4  # px a letter of 11 px sans-serif takes, about
# Light enough for dark text on top (Okabe and Ito's colours, mixed with white).
COLOURS = ("#8ec7ec", "#f5c26b", "#7fd1b4", "#e3a9cc", "#f2b199", "#b5b9ef", "#d9d27a", "#a9cfa0")
MERGED, FAINT, GAP, ALARM = "#9aa0a6", "#80868b", "#f6d5d5", "#b3261e"
GAP_INK = "#7a1f1a"
HATCHED = "fixed"


@dataclass(frozen=True)
class Box:
    """One thing that took time, in microseconds of its lane's clock."""

    name: str
    start_us: float
    end_us: float

    @property
    def us(self) -> float:
        return self.end_us - self.start_us


@dataclass(frozen=True)
class Lane:
    """One track with its own axis from start to end."""

    title: str
    boxes: tuple[Box, ...]
    start_us: float
    end_us: float
    caption: str
    gap_word: str
    note: str = ""
    """Instead of boxes: why there are none."""
    fixed_us: float = 0.0
    """Part of each box that is the cost model's fixed cost; hatched."""

    @property
    def scale(self) -> float:
        """Pixels a microsecond."""
        return PLOT / (self.end_us - self.start_us)

    def x(self, moment_us: float) -> float:
        return LEFT + (moment_us - self.start_us) * self.scale


def draw(title: str, host: Lane, device: Lane, simulated: bool) -> str:
    """Return the picture as SVG."""
    parts = [svg.hatching(HATCHED), svg.label(12, 22, _cut(title, 140), size=15, bold=True)]
    for lane, top in zip((host, device), TOPS, strict=True):
        parts += _lane(lane, top, simulated)
    return svg.document(WIDTH, HEIGHT, title, parts + _legend(host, device))


def _lane(lane: Lane, top: int, simulated: bool) -> list[str]:
    parts = [
        svg.label(12, top + 32, lane.title, size=14, bold=True),
        svg.label(LEFT, top - 8, _cut(lane.caption, 165)),
        svg.rect(LEFT, top, PLOT, LANE_HEIGHT, "#f1f3f4"),
    ]
    if not lane.boxes or lane.end_us <= lane.start_us:
        parts.append(svg.label(LEFT + 12, top + 32, lane.note or "nothing was recorded"))
    else:
        parts += _gaps(lane, top)
        for box, count in _merged(lane):
            parts += _box(lane, box, count, top)
        parts += _axis(lane, top + LANE_HEIGHT)
    if simulated:
        parts.append(
            svg.label(RIGHT - 8, top + 15, "SIMULATED", anchor="end", size=14, bold=True,
                      fill=ALARM, halo=True)
        )  # fmt: skip
    return parts


def gaps(lane: Lane) -> list[tuple[float, float]]:
    """The parts of the axis that no box covers, as start and end in microseconds."""
    found = []
    until = lane.start_us
    for box in sorted(lane.boxes, key=lambda box: box.start_us):
        if box.start_us > until:
            found.append((until, box.start_us))
        until = max(until, box.end_us)
    if lane.end_us > until:
        found.append((until, lane.end_us))
    return found


def _gaps(lane: Lane, top: int) -> list[str]:
    parts = []
    widest = sorted(gaps(lane), key=lambda gap: gap[0] - gap[1])[:MOST_BOXES]
    for start, end in sorted(gap for gap in widest if (gap[1] - gap[0]) * lane.scale >= SEEN):
        x, width = lane.x(start), (end - start) * lane.scale
        words = _duration(end - start)
        parts.append(svg.rect(x, top, width, LANE_HEIGHT, GAP, tip=f"{lane.gap_word}: {words}"))
        if width > len(words) * LETTER + 8:
            y = top + LANE_HEIGHT - 7
            parts.append(svg.label(x + width / 2, y, words, anchor="middle", fill=GAP_INK))
    return parts


def _merged(lane: Lane) -> list[tuple[Box, int]]:
    """The boxes as drawn, with how many each stands for.

    Neighbours too thin to see become one, and all of them are at most MOST_BOXES.
    """
    thin = THIN
    while True:
        drawn: list[tuple[Box, int]] = []
        for box in sorted(lane.boxes, key=lambda box: box.start_us):
            last, count = drawn[-1] if drawn else (None, 0)
            if (
                last is not None
                and box.us * lane.scale < thin
                and (count > 1 or last.us * lane.scale < thin)
                and (box.start_us - last.end_us) * lane.scale < thin
            ):
                end = max(last.end_us, box.end_us)
                drawn[-1] = (Box("", last.start_us, end), count + 1)
            else:
                drawn.append((box, 1))
        if len(drawn) <= MOST_BOXES or thin > PLOT:
            return drawn
        thin *= 2


def _box(lane: Lane, box: Box, count: int, top: int) -> list[str]:
    x, y, height = lane.x(box.start_us), top + STRIP, LANE_HEIGHT - STRIP - 4
    width = max(box.us * lane.scale, 0.5)
    name = box.name if count == 1 else f"{count} events"
    words = f"{name}{'' if count == 1 else ' within'}: {_duration(box.us)}"
    colour = _colour(box.name) if count == 1 else MERGED
    parts = [svg.rect(x, y, width, height, colour, tip=words, edge=width > 2)]
    fixed = min(lane.fixed_us * lane.scale, width) if count == 1 else 0.0
    if fixed > 2:
        parts.append(svg.rect(x, y, fixed, height, f"url(#{HATCHED})"))
    room = int((width - 6) / LETTER)
    shown = name.removeprefix("aten::")
    if room >= min(len(shown), 4):
        middle = x + width / 2
        parts.append(svg.label(middle, y + 17, _cut(shown, room), anchor="middle", halo=True))
        if room >= len(_duration(box.us)):
            parts.append(svg.label(middle, y + 32, _duration(box.us), anchor="middle", halo=True))
    return parts


def _axis(lane: Lane, y: int) -> list[str]:
    span = lane.end_us - lane.start_us
    step = round_step(span / 8)
    unit, divisor = ("ms", 1000.0) if span >= 10_000 else ("us", 1.0)
    parts = []
    for number in range(math.floor(span / step) + 1):
        x = LEFT + number * step * lane.scale
        words, anchor = f"{number * step / divisor:,.6g}", "middle"
        if number == 0:
            words, anchor = f"0 {unit}", "start"
        elif x > RIGHT - 20:
            anchor = "end"
        parts.append(svg.line(x, y, x, y + 4, FAINT))
        parts.append(svg.label(x, y + 16, words, anchor=anchor))
    return parts


def _legend(host: Lane, device: Lane) -> list[str]:
    shared = (host.start_us, host.end_us) == (device.start_us, device.end_us)
    note = "one clock for both" if shared else "two clocks: host and device do not line up"
    parts = [
        svg.rect(LEFT, LEGEND, 16, 10, GAP),
        svg.label(LEFT + 22, LEGEND + 9, f"{host.gap_word}; {device.gap_word}"),
    ]
    if host.boxes and device.boxes:
        parts.append(svg.label(RIGHT, LEGEND + 9, note, anchor="end"))
    if device.fixed_us and device.boxes:
        words = f"fixed cost of an execution in the cost model: {_duration(device.fixed_us)}"
        parts += [
            svg.rect(430, LEGEND, 16, 10, COLOURS[0]),
            svg.rect(430, LEGEND, 16, 10, f"url(#{HATCHED})"),
            svg.label(452, LEGEND + 9, words),
        ]
    return parts


def round_step(rough: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= rough)


def _duration(time_us: float) -> str:
    if time_us >= 10_000:
        return f"{time_us / 1000:,.1f} ms"
    return f"{time_us:,.0f} us" if time_us >= 100 else f"{time_us:.3g} us"


def _colour(name: str) -> str:
    """The same colour for the same operator, in every run."""
    return COLOURS[zlib.crc32(name.encode("utf-8", "replace")) % len(COLOURS)]


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: max(most - 1, 1)] + "…"
