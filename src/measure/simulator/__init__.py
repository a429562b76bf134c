"""A pure-Python `neuron` device: correct on the host's CPU, timed by a model, recorded as the real
profiler would.

Its numbers are never a measurement. `install` makes `device="neuron"`, `torch.neuron` and
`torch.compile(backend="neuron")` exist; `profiling` offers the published names. Read in this order:

- `install.py`        puts the device in place, once per process
- `memory.py`         a device tensor is a plain tensor over host memory; the allocator's books
- `operators.py`      every operator: computed on the host views, entered as one execution
- `schemas.py`        what an operator's schema says: what it writes, what it returns, whether it
only makes a view
- `matmul.py`         large products in half precision, in float32 on the host
- `copies.py`         allocation, copies between host and device, reads of single values
- `fused.py`          operators that Trainium lowers to one kernel: RMS norm, attention
- `autocast.py`       which operators `torch.autocast("neuron")` casts
- `compiler.py`       the Dynamo backend: one graph, one execution
- `cost.py`           how long an execution takes, and what it moves and computes
- `neffs.py`          compiled programs, and their files in the NEFF cache
- `record.py`         executions and copies on the model's clock; visible only after `synchronize()`
- `device_module.py`  what `torch.neuron` offers
- `profiling.py`      NeuronConfig, ProfileMode, NeuronProfiler
- `sessions.py`       one profiling session, from torch.profiler's start to its stop
- `table.py`          device time in `key_averages()` and in `trace.json`
- `trace_files.py`    the files that a session leaves
"""

from __future__ import annotations

from .cost import CostModel
from .install import install

__all__ = ["CostModel", "install"]
