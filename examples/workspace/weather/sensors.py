"""Reads the station's sensors."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    celsius: float
    hectopascal: float


def read() -> Reading:
    # TODO(ada): talk to the real sensor over I2C
    return Reading(celsius=round(random.uniform(-5, 30), 1), hectopascal=round(random.uniform(980, 1040), 1))


def calibrated(reading: Reading, offset: float) -> Reading:
    # FIXME: the offset depends on the temperature, too
    return Reading(reading.celsius + offset, reading.hectopascal)
