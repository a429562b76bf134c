"""The built-in workloads, one file each; conf/workload names them. Loaded by workload.py.

A workload module offers `make_inputs(shape, dtype, seed)`, one function per implementation with
naive first, and `bytes_moved` / `flops` of one step; some also offer `tokens`, `host_bytes` (what
the naive lines take at once), PHASES (then all of these get a `phase`) and TOLERANCE_FACTOR. It
never knows on which device it runs.
"""
