"""The built-in workloads, one file each; conf/workload names them. Loaded by variants.py.

A workload module offers `make_inputs(shape, dtype, seed)`, one function per implementation with
naive first, and `bytes_moved` / `flops` of one step. It never knows on which device it runs.
"""
