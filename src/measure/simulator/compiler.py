"""`torch.compile(backend="neuron")`: a Dynamo graph runs on the host as it stands, and is ONE
execution on the device.

Where gradients or autocast are involved, AOTAutograd makes a forward and a backward graph first,
each one execution. A graph that leaves the device, or has symbolic shapes, is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from . import fused, neffs, record
from .cost import Region, Work, distinct_bytes, flops, region
from .matmul import WideProducts
from .memory import DEVICE_TYPE, adopt, host_view, on_device
from .operators import unseen
from .schemas import plan_of

# Operators that a joint graph holds and that the host has no kernel for.
_ON_HOST: dict[Any, Callable[..., Any]] = {
    torch.ops.aten._fused_rms_norm_backward.default: fused.rms_norm_backward
}


class Meter(TorchDispatchMode):
    """Watches one run of a graph: its arithmetic, and what it reads and writes of its inputs'
    memory.
    """

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's is not annotated
        self.storages = {tensor.untyped_storage()._cdata for tensor in inputs}
        self.work = Work()
        self.reads: list[Region] = []
        self.writes: list[Region] = []
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        results = func(*args, **kwargs)
        plan = plan_of(func)
        if plan.is_free:
            return results
        written, sources = plan.writes(args, kwargs), plan.read(args, kwargs)
        fresh = [one for one in pytree.tree_leaves(results) if isinstance(one, torch.Tensor)]
        self.operators += 1
        self.work.add_flops(flops(func, args, kwargs, sources, fresh or written))
        self.reads += self._of_inputs(sources)
        self.writes += self._of_inputs(written)
        return results

    def _of_inputs(self, tensors: Sequence[torch.Tensor]) -> list[Region]:
        return [region(one) for one in tensors if one.untyped_storage()._cdata in self.storages]

    def total(self, outputs: Sequence[torch.Tensor]) -> Work | None:
        """The work of the whole graph; None where it only made views, and the device had nothing
        to do.
        """
        if not self.operators:
            return None
        made = [region(one) for one in outputs if one.untyped_storage()._cdata not in self.storages]
        self.work.bytes = distinct_bytes(self.reads) + distinct_bytes(self.writes + made)
        return self.work


class Program:
    """One compiled graph: callable with device tensors, like the graph itself."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.on_device_outputs, self.index = _check(graph)
        unseen(_move_to_host)(graph)  # AOTAutograd compiles under its fake tensor mode
        self.graph = graph
        inputs = [
            node.meta.get("example_value", node.meta.get("val"))
            for node in graph.graph.nodes
            if node.op == "placeholder"
        ]
        geometry = ";".join(
            f"{one.dtype}{tuple(one.shape)}" for one in inputs if isinstance(one, torch.Tensor)
        )
        names = tuple(str(node.target) for node in graph.graph.nodes if node.op.startswith("call_"))
        self.model = neffs.program(f"{graph.code}|{geometry}", "graph", "graph", names)
        self.work: Work | None = None
        self.is_measured = False

    def __call__(self, *args: Any) -> Any:
        return unseen(self._run, by_modes=False)(*args)

    def _run(self, *args: Any) -> Any:
        hosts = [host_view(one) if on_device(one) else one for one in args]
        if self.is_measured:
            with WideProducts():
                results = self.graph(*hosts)
        else:  # shapes are static, so one run tells what every run does
            meter = Meter([one for one, given in zip(hosts, args, strict=True) if on_device(given)])
            with WideProducts(), meter:
                results = self.graph(*hosts)
            self.work = meter.total(
                [one for one in pytree.tree_leaves(results) if isinstance(one, torch.Tensor)]
            )
            self.is_measured = True
        leaves, spec = pytree.tree_flatten(results)
        if self.work is not None:
            record.execute(self.model, self.work, self.index)
        given = {id(host): arg for host, arg in zip(hosts, args, strict=True)}
        moved = [
            (given.get(id(one)) if id(one) in given else adopt(one.detach(), self.index))
            if isinstance(one, torch.Tensor) and on_neuron
            else one
            for one, on_neuron in zip(leaves, self.on_device_outputs, strict=True)
        ]
        return pytree.tree_unflatten(moved, spec)


def _values(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("example_value", node.meta.get("val"))
    return [one for one in pytree.tree_leaves(value) if isinstance(one, torch.Tensor)]


def _check(graph: torch.fx.GraphModule) -> tuple[list[bool], int]:
    """Which outputs are on the device, and on which; refuses graphs that leave it."""
    indices: set[int] = set()
    outputs: list[bool] = []
    for node in graph.graph.nodes:
        if node.op == "output":
            for leaf in pytree.tree_leaves(node.args[0]):
                values = _values(leaf) if isinstance(leaf, torch.fx.Node) else []
                outputs.append(bool(values) and values[0].device.type == DEVICE_TYPE)
            continue
        for value in _values(node):
            if _is_symbolic(value):
                raise NotImplementedError(
                    "backend 'neuron' has static shapes only: the result's shape depends on data "
                    f"at {node.format_node()}"
                )
            if value.device.type == DEVICE_TYPE:
                indices.add(value.device.index or 0)
                continue
            from_device = any(
                one.device.type == DEVICE_TYPE
                for source in node.all_input_nodes
                for one in _values(source)
            )
            if value.device.type != "cpu" or value.dim() or from_device:
                raise NotImplementedError(
                    f"backend 'neuron' (simulated): the graph holds a tensor on {value.device} at "
                    f"{node.format_node()}; move tensors to the device before the "
                    "compiled function, and back after it"
                )
    if len(indices) > 1:
        raise NotImplementedError(
            f"backend 'neuron' (simulated): the graph uses several devices: {sorted(indices)}"
        )
    return outputs, next(iter(indices), 0)


def _move_to_host(graph: torch.fx.GraphModule) -> None:
    """Let the graph's constants, its factory calls and its `.to(device)` calls mean the host."""

    def moved(value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == DEVICE_TYPE:
            return torch.device("cpu")
        is_name = isinstance(value, str) and value.partition(":")[0] == DEVICE_TYPE
        return "cpu" if is_name else value

    for module in [one for one in graph.modules() if isinstance(one, torch.fx.GraphModule)]:
        for node in list(module.graph.nodes):
            if node.op == "call_method" and node.target == DEVICE_TYPE:
                raise NotImplementedError(
                    "backend 'neuron' (simulated): .neuron() inside a compiled function"
                )
            if node.op == "get_attr":
                value = module
                for part in str(node.target).split("."):
                    value = getattr(value, part)
                if on_device(value):
                    name = f"_host_{str(node.target).replace('.', '_')}"
                    setattr(module, name, host_view(value))  # type: ignore[arg-type]  # on_device says it is a tensor
                    node.target = name
                continue
            node.target = _ON_HOST.get(node.target, node.target)
            node.args = pytree.tree_map(moved, node.args)
            node.kwargs = pytree.tree_map(moved, node.kwargs)
        module.recompile()


def _is_symbolic(value: Any) -> bool:
    symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
    if isinstance(value, torch.Tensor):
        return any(
            isinstance(n, symbolic) for n in (*value.shape, *value.stride(), value.storage_offset())
        )
    return isinstance(value, symbolic)


def compile_graph(
    graph: torch.fx.GraphModule, inputs: list[Any], **options: Any
) -> Callable[..., Any]:
    """The Dynamo backend."""
    if any(_is_symbolic(value) for value in inputs):
        raise NotImplementedError(
            "backend 'neuron' has static shapes only: dynamic=True is refused, pass "
            "dynamic=False to torch.compile"
        )
    needs_grad = torch.is_grad_enabled() and any(
        isinstance(one, torch.Tensor) and one.requires_grad for one in inputs
    )
    has_autocast = torch.is_autocast_enabled(DEVICE_TYPE) or any(
        "autocast" in str(node.target) for node in graph.graph.nodes
    )
    if not needs_grad and not has_autocast:
        return Program(graph)
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch._aot_autograd.utils import make_boxed_func

    def one_program(aten_graph: torch.fx.GraphModule, _: list[Any]) -> Any:
        return make_boxed_func(Program(aten_graph))

    made: Callable[..., Any] = aot_autograd(fw_compiler=one_program, bw_compiler=one_program)(
        graph, inputs
    )
    return made


def register() -> None:
    """Make the backend known to Dynamo, at the first `torch.compile`: importing Dynamo takes
    seconds.
    """
    original = torch.compile

    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  # the name it replaces
        _introduce_to_dynamo()
        return original(*args, **kwargs)

    torch.compile = compile


@functools.cache
def _introduce_to_dynamo() -> None:
    import torch._dynamo
    import torch._dynamo.trace_rules

    torch._dynamo.register_backend(compiler_fn=compile_graph, name=DEVICE_TYPE)
    # Operators that run between two graphs must not have their Python kernels compiled.
    torch._dynamo.trace_rules.add(__package__)
    # As on the real device, every new shape is compiled anew: Dynamo must not try dynamic shapes by
    # itself.
    torch._dynamo.config.automatic_dynamic_shapes = False
