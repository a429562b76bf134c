"""What one logical NeuronCore can do at most: peaks by chip and LNC, with their sources.

Called by roofline.py. Data-sheet figures; nobody measured them here.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = (
    "AWS Neuron architecture pages for NeuronCore-v2, -v3 and -v4; HBM is the chip's bandwidth "
    "shared out over its physical cores"
)
DEFAULT = "trn2"


@dataclass(frozen=True)
class Chip:
    """One chip; peaks of TensorE are for one physical core, per second."""

    name: str
    core: str
    physical_cores: int
    default_lnc: int
    hbm_bytes_per_s: float
    """Of the whole chip."""
    flops_per_s: dict[str, float]


# TensorE runs float16 at the rate of bfloat16. The core pages' figures, not chip totals divided by
# cores, which are up to 6 % higher (trn2: 667 TFLOPS in BF16 against 8 x 79 = 632).
CHIPS = {
    # 95 and 23.75: derived, half of the chip's 190 and 47.5; 820 GiB/s.
    "trn1": Chip("trn1", "v2", 2, 1, 820 * 1024**3, {"bfloat16": 95e12, "float32": 23.75e12}),
    "trn2": Chip("trn2", "v3", 8, 2, 2.9e12, {"bfloat16": 79e12, "float32": 20e12}),
    "trn3": Chip("trn3", "v4", 8, 2, 4.9e12, {"bfloat16": 79e12, "float32": 20e12}),
}
SAME_CHIP = {"inf2": "trn1"}


@dataclass(frozen=True)
class Peaks:
    """The limits of one logical core."""

    chip: str
    lnc: int
    assumed: bool
    """The run does not say which chip it ran on."""
    hbm_bytes_per_s: float
    flops_per_s: float | None
    """TensorE in the given dtype; None when no page gives it."""

    def __str__(self) -> str:
        assumed = ", assumed" if self.assumed else ""
        return f"one logical core of {self.chip} (LNC{self.lnc}{assumed})"


def peaks(chip: str | None, lnc: int | None, dtype: str) -> Peaks:
    """Return one logical core's peaks; an unknown chip is taken for a trn2.

    `chip` is an instance family such as trn1n or trn2u; `lnc` None means the chip's default.
    """
    name = (chip or "").lower()
    known = next((one for one in (*CHIPS, *SAME_CHIP) if name.startswith(one)), None)
    found = CHIPS[SAME_CHIP.get(known, known) if known else DEFAULT]
    size = lnc or found.default_lnc
    rate = found.flops_per_s.get("bfloat16" if dtype == "float16" else dtype)
    return Peaks(
        chip=known or DEFAULT,
        lnc=size,
        assumed=known is None,
        hbm_bytes_per_s=size * found.hbm_bytes_per_s / found.physical_cores,
        flops_per_s=None if rate is None else size * rate,
    )
