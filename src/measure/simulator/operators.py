"""Every operator of the device: computed by PyTorch's CPU kernels on host views, entered as one
execution.

Installed as the boxed fallback of PrivateUse1, and registered by name for operators which PyTorch
would otherwise split into several (the functional and in-place forms of `mul` go through
`mul.out`): one call is one row and one execution. Composite operators are left to PyTorch. What the
host cannot compute raises NotImplementedError naming the operator.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from . import memory, neffs, record
from .cost import distinct_bytes, flops, region
from .matmul import on_host
from .memory import CPU_KEYS, DEVICE_TYPE, adopt, host_view, on_device
from .schemas import Plan, flat, plan_of

set_eval_frame = torch._C._dynamo.eval_frame.set_eval_frame


def _keys(*names: str) -> torch._C.DispatchKeySet:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, names[0]))
    for name in names[1:]:
        keys = keys | torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name))
    return keys


_HIDDEN_FROM_AUTOCAST = _keys("AutocastCPU", "AutocastPrivateUse1")
_HIDDEN = _HIDDEN_FROM_AUTOCAST | _keys("Python", "PythonTLSSnapshot")
_CPU = torch.device("cpu")
# Indices may stay on the host, as CUDA allows; one-element host tensors may not enter these, as
# CUDA refuses them.
_TAKES_HOST_INDICES = ("index", "_index", "_unsafe_index")
_TAKES_NO_HOST_SCALARS = frozenset({"cat", "stack", "_cat", "hstack", "vstack"})


def unseen(function: Callable[..., Any], by_modes: bool = True) -> Callable[..., Any]:
    """Run a kernel so that the host's part in it is seen by nothing that watches the device's
    operators.

    That is: the profiler, autocast, Dynamo, __torch_function__ and (`by_modes`) __torch_dispatch__
    modes.
    """
    hidden = _HIDDEN if by_modes else _HIDDEN_FROM_AUTOCAST

    @functools.wraps(function)
    def kernel(*args: Any, **kwargs: Any) -> Any:
        dynamo = set_eval_frame(None)
        torch._C._autograd._enable_record_function(False)
        try:
            with torch._C._ExcludeDispatchKeyGuard(hidden), torch._C.DisableTorchFunction():
                return function(*args, **kwargs)
        finally:
            torch._C._autograd._enable_record_function(True)
            set_eval_frame(dynamo)

    return kernel


class Call:
    """One call of an operator on its way to the host: the host's arguments, and what came from
    the device.
    """

    def __init__(self, op: torch._ops.OpOverload, plan: Plan, args: Any, kwargs: Any) -> None:
        self.op, self.plan, self.args = op, plan, args
        self.host_tensors: list[torch.Tensor] = []
        self.index: int | None = None
        self.target: torch.device | None = kwargs.get("device")
        self.kwargs = kwargs
        self.host_args = tuple(self._to_host(value) for value in args)
        self.host_kwargs = {key: self._to_host(value) for key, value in kwargs.items()}
        if self.host_kwargs.get("pin_memory"):
            raise RuntimeError("Cannot pin 'neuron' memory: only dense CPU tensors can be pinned")
        if self.index is None and self.target is not None and self.target.type == DEVICE_TYPE:
            self.index = self.target.index or 0
        if self.host_tensors:
            self._check_host_tensors()

    def _to_host(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device.type == DEVICE_TYPE:
                if self.index is None:
                    self.index = value.device.index
                elif self.index != value.device.index:
                    self._refuse_devices(f"neuron:{self.index}", f"neuron:{value.device.index}")
                return host_view(value)
            if value.device.type != "cpu":
                self._refuse_devices(DEVICE_TYPE, str(value.device))
            self.host_tensors.append(value)
            return value
        if type(value) in (list, tuple):
            return [self._to_host(item) for item in value]
        if isinstance(value, torch.device):
            return _CPU if value.type == DEVICE_TYPE else value
        if isinstance(value, torch.Generator):
            raise RuntimeError(
                f"{self.op}: expected a 'neuron' device type for generator but found "
                f"'{value.device.type}'; the simulated device draws from the host's "
                "default generator (torch.manual_seed)"
            )
        return value

    def _check_host_tensors(self) -> None:
        name = self.plan.name
        written = [self.plan.argument(one, self.args, self.kwargs) for one in self.plan.written]
        takes_indices = name.startswith(_TAKES_HOST_INDICES) and "indices" in self.plan.arguments
        indices = self.plan.argument("indices", self.args, self.kwargs) if takes_indices else ()
        for tensor in self.host_tensors:
            is_scalar = tensor.dim() == 0 and name not in _TAKES_NO_HOST_SCALARS
            is_index = any(tensor is one for one in indices)
            if any(tensor is one for one in written) or not (is_scalar or is_index):
                self._refuse_devices(f"neuron:{self.index}", "cpu")

    def _refuse_devices(self, first: str, second: str) -> None:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{first} and {second}! (operator {self.op})"
        )


def run(op: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Run one operator on the device."""
    plan = plan_of(op)
    if plan.is_view or plan.changes_metadata:
        return op.redispatch(CPU_KEYS, *args, **kwargs)
    return _run(op, plan, args, kwargs)


@unseen
def _run(op: torch._ops.OpOverload, plan: Plan, args: Any, kwargs: Any) -> Any:
    call = Call(op, plan, args, kwargs)
    try:
        results = _with_outs(call) if plan.outs else on_host(op, call.host_args, call.host_kwargs)
    except NotImplementedError as error:
        raise NotImplementedError(
            f"simulated neuron device: operator {op} is not implemented ({error})"
        ) from error
    return finish(call, results)


def finish(call: Call, results: Any) -> Any:
    """Bring the host's results to the device and enter the execution."""
    plan = call.plan
    index = call.index or 0
    to_host = call.target is not None and call.target.type != DEVICE_TYPE
    outputs: list[torch.Tensor] = []
    listed = results if isinstance(results, tuple) and len(plan.returns) > 1 else (results,)
    answer = []
    for value, owner in zip(listed, plan.returns, strict=False):
        answer.append(
            _to_device(value, call, index, to_host, outputs)
            if owner is None
            else plan.argument(owner, call.args, call.kwargs)
        )
    if not plan.allocates and not to_host:
        _enter(call, index, outputs)
    if not plan.returns:
        return None
    return tuple(answer) if len(plan.returns) > 1 else answer[0]


def _to_device(
    value: Any, call: Call, index: int, to_host: bool, outputs: list[torch.Tensor]
) -> Any:
    # Not a closure: a recursive one is a reference cycle, and would keep the outputs' memory until
    # a collection.
    if isinstance(value, torch.Tensor):
        if to_host:
            return value
        if any(value.data_ptr() == given.data_ptr() for given in call.host_tensors):
            value = value.clone()  # the caller's own host memory must not become the device's
        try:
            made = adopt(value, index)
        except NotImplementedError as error:
            raise NotImplementedError(f"{error} (operator {call.op})") from error
        outputs.append(made)
        return made
    if type(value) in (list, tuple):
        return type(value)(_to_device(item, call, index, to_host, outputs) for item in value)
    return value


def _enter(call: Call, index: int, outputs: list[torch.Tensor]) -> None:
    produced = outputs + call.plan.writes(call.args, call.kwargs)
    if produced and not any(tensor.numel() for tensor in produced):
        return  # nothing to do, and nothing is launched
    sources = [one for one in call.plan.read(call.args, call.kwargs) if on_device(one)]
    work = flops(call.op, call.args, call.kwargs, sources, produced)
    work.bytes = distinct_bytes(map(region, sources)) + distinct_bytes(map(region, produced))
    geometry = ";".join(f"{tensor.dtype}{tuple(tensor.shape)}" for tensor in sources + produced)
    model = neffs.program(
        f"{call.op}|{geometry}", f"aten::{call.plan.name}", "operator", (str(call.op),)
    )
    record.execute(model, work, index)


def _with_outs(call: Call) -> Any:
    """Compute into the caller's `out=`; where it has another shape, into fresh memory that it
    then takes over.
    """
    names = call.plan.outs
    outs = {name: call.plan.argument(name, call.args, call.kwargs) for name in names}
    hosts = {name: call.plan.argument(name, call.host_args, call.host_kwargs) for name in names}
    listed = [
        (device, host)
        for name in names
        for device, host in zip(flat(outs[name]), flat(hosts[name]), strict=True)
    ]
    if all(device.numel() for device, _ in listed):
        try:
            results = call.op(*call.host_args, **call.host_kwargs)
        except RuntimeError as error:
            if "not resizable" not in str(error):
                raise
        else:
            for device, host in listed:
                if device.shape != host.shape or device.stride() != host.stride():
                    storage = device.untyped_storage()
                    memory.set_geometry(
                        device, storage, int(host.storage_offset()), host.shape, host.stride()
                    )
            return results
    fresh = dict(call.host_kwargs)
    for name in names:
        one = hosts[name]
        if isinstance(one, torch.Tensor):
            fresh[name] = torch.empty(0, dtype=one.dtype, device="cpu")
        elif one is not None:
            fresh[name] = [torch.empty(0, dtype=item.dtype, device="cpu") for item in one]
    results = call.op(*call.host_args, **fresh)
    made = [tensor for name in names for tensor in flat(fresh[name])]
    for (device, _), host in zip(listed, made, strict=True):
        memory.take_result(device, host)
    return results


def _is_worth_a_kernel(name: str) -> bool:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    explicit = has(name, "CompositeExplicitAutograd") or has(
        name, "CompositeExplicitAutogradNonFunctional"
    )
    return explicit and not name.startswith(("aten::_nested", "aten::_sparse", "aten::sparse"))


def register(
    aten: torch.library.Library, everything: torch.library.Library, own: frozenset[str]
) -> None:
    """Install `run`: as the fallback, and by name except for the `own` operators that other
    files register.
    """
    everything.fallback(run, "PrivateUse1")
    for full_name in torch._C._dispatch_get_all_op_names():
        if not full_name.startswith("aten::") or not _is_worth_a_kernel(full_name):
            continue
        name = full_name.removeprefix("aten::")
        packet, _, overload = name.partition(".")
        if name in own or not hasattr(torch.ops.aten, packet):
            continue
        op = getattr(getattr(torch.ops.aten, packet), overload or "default", None)
        if op is None or plan_of(op).is_view or plan_of(op).changes_metadata:
            continue

        def kernel(*args: Any, _op: torch._ops.OpOverload = op, **kwargs: Any) -> Any:
            return run(_op, *args, **kwargs)

        aten.impl(name, kernel, "PrivateUse1")
