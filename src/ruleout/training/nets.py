"""Stacks of models: one forward and one backward pass for ``[T, C]`` models at once.

Linear models and perceptrons share the batch of their trial, so their first layer is one matrix
product for the whole grid, and their gradients are written out. Other modules made of matrix
products go through `torch.func.vmap`; any other is itself, its weights views of the stack.
"""

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, cached_property, partial
from importlib.util import find_spec
from itertools import accumulate, cycle, product
from math import prod
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from ruleout.labels.errors import InputError
from ruleout.training.device import Numbers, tf32
from ruleout.training.optimizers import At, Product

#: Logits ``[A, C, B, k]`` to losses ``[A, C]`` and their slopes, of the shape of the logits.
LossOf: TypeAlias = Callable[[Tensor], tuple[Tensor, Tensor]]
#: Moves ``parameters[place][at]`` by its gradient, which may be overwritten.
Move: TypeAlias = Callable[[int, At, Tensor | Product], None]


def dense_layers(module: nn.Module) -> list[nn.Linear] | None:
    """Return the layers of a linear model or ReLU perceptron; None for any other module."""
    parts = list(module) if type(module) is nn.Sequential else [module]
    if parts and isinstance(parts[0], nn.Flatten):
        parts = parts[1:]
    between = all(type(part) is nn.ReLU for part in parts[1::2])
    linear = [part for part in parts[::2] if type(part) is nn.Linear and part.bias is not None]
    # Each weight is trained, and once: those that are frozen or shared need a module of its own.
    free = {id(p) for part in linear for p in part.parameters() if p.requires_grad}
    whole = between and len(parts) == 2 * len(linear) - 1 and len(free) == 2 * len(linear)
    return linear if whole else None


def warn_of_clpl(module: nn.Module, stacklevel: int) -> None:
    layers = dense_layers(module)
    if layers is None or len(layers) > 1:
        say = "CLPL is convex in a linear model only; with this one its guarantee is gone"
        warnings.warn(say, UserWarning, stacklevel=stacklevel + 1)


class Dense:
    """Linear models and ReLU perceptrons, for rows of a given width.

    The bias of the first layer is a column of its weights: `Features` ends every row in a 1.
    Weights are ``[out, in]`` and layers hand on ``[out, B]``, so that the first layer is one matrix
    product for all models of a trial.
    """

    def __init__(
        self, modules: Sequence[nn.Module], models: int, width: int, numbers: Numbers
    ) -> None:
        self.models, (device, self.dtype, self.compute) = models, numbers
        layers = [dense_layers(module) or [] for module in modules]
        places = {id(part): name for name, part in modules[0].named_modules()}
        self.names = [f"{places[id(one)]}.".removeprefix(".") for one in layers[0]]
        self.features = layers[0][0].in_features
        self.parameters: list[Tensor] = []  # each [T, C, ...]
        for place, same in enumerate(zip(*layers, strict=True)):
            weight = torch.stack([one.weight.detach() for one in same]).to(self.dtype)
            bias = torch.stack([one.bias.detach() for one in same]).to(self.dtype).unsqueeze(-1)
            if place == 0:
                rest = weight.new_zeros(*weight.shape[:2], width - self.features - 1)
                starts = [torch.cat([weight, bias, rest], -1)]
            else:
                starts = [weight, bias]
            self.parameters += [_repeat(start, models, device) for start in starts]
        self.buffers: dict[str, Tensor] = {}  # what changes untrained, such as running means

    @cached_property
    def _grad(self) -> Tensor:
        return torch.empty_like(self.parameters[0])

    def step(self, x: Tensor, loss_of: LossOf, move: Move) -> Tensor:
        """Return the losses ``[A, C]`` of a batch ``[A, B, ...]``, and move all weights."""
        with torch.no_grad():
            logits, reads = self._forward(x)
        loss, slope = loss_of(logits)
        with torch.no_grad():
            self._backward(x, reads, slope.transpose(2, 3), move)
        return loss

    def logits(self, x: Tensor, *, training: bool = False) -> Tensor:
        """Return ``[T, C, n, k]`` for rows ``[n, ...]``, or ``[T, n, ...]`` of each trial.

        In `training` batch norm and dropout do what they do in a step.
        """
        del training  # there are none here
        with torch.no_grad():
            return self._forward(x)[0]

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return logits ``[A, C, B, k]``, and what each layer after the first read."""
        out = self._first(x)
        active, reads = len(out), list[Tensor]()
        for weight, bias in zip(self.parameters[1::2], self.parameters[2::2], strict=True):
            reads.append(out.relu_())
            flat = self._product(weight[:active].flatten(0, 1), out.flatten(0, 1))
            out = flat.view(active, self.models, *flat.shape[1:]).add_(bias[:active])
        return out.transpose(2, 3), reads

    def _first(self, x: Tensor) -> Tensor:
        """Return what the first layer makes of a batch, ``[A, C, out, B]``."""
        active = len(x) if x.ndim == 3 else len(self.parameters[0])
        rows = x.expand(active, *x.shape[-2:]).transpose(1, 2)
        joint = self.parameters[0][:active].flatten(1, 2)  # [A, C · out, width]
        return self._product(joint, rows).view(active, self.models, -1, x.shape[-2])

    def _backward(self, x: Tensor, reads: list[Tensor], slope: Tensor, move: Move) -> None:
        """Move all weights, from the slope ``[A, C, k, B]`` of the logits."""
        active = len(slope)
        slope, every = slope.contiguous(), (slice(0, active), slice(0, self.models))
        for layer, read in reversed(list(enumerate(reads))):
            flat, bias = slope.flatten(0, 1), slope.sum(-1, keepdim=True)
            grad = self._product(flat, read.flatten(0, 1).transpose(1, 2))
            weight = self.parameters[1 + 2 * layer][:active].flatten(0, 1)
            back = self._product(weight.transpose(1, 2), flat).view_as(read)
            slope = torch.ops.aten.threshold_backward(back, read, 0)
            move(1 + 2 * layer, every, grad.view(active, self.models, *grad.shape[1:]))
            move(2 + 2 * layer, every, bias)
        if x.is_cuda and reads and tf32():
            x = x.transpose(1, 2).contiguous().transpose(1, 2)  # fastest along the batch
        grad = self._grad[:active]
        self._product(slope.flatten(1, 2), x, grad.flatten(1, 2))
        move(0, every, grad)

    def _product(self, left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
        left, right = left.to(self.compute), right.to(self.compute)
        if out is None:
            return torch.bmm(left, right).to(self.dtype)
        if out.dtype is self.compute:
            return torch.bmm(left, right, out=out)
        return out.copy_(torch.bmm(left, right))

    def named(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return tensors like `parameters` under the names that the module gives them."""
        weights = [tensors[0][..., : self.features], *tensors[1::2]]
        biases = [tensors[0][..., self.features], *(bias.squeeze(-1) for bias in tensors[2::2])]
        both = zip(self.names, weights, biases, strict=True)
        return {n: t for name, w, b in both for n, t in ((f"{name}weight", w), (f"{name}bias", b))}


def _repeat(start: Tensor, models: int, device: torch.device) -> Tensor:
    """Give every configuration the same start: ``[T, ...]`` becomes ``[T, C, ...]``."""
    shape = (len(start), models, *start.shape[1:])
    return start.unsqueeze(1).expand(shape).contiguous().to(device)


def try_module(module: nn.Module, classes: int) -> tuple[bool, int]:
    """Try a module on rows of zeros of its ``example_shape``; raise where it cannot read them.

    Returns whether it draws random numbers while it trains, and the rows that a batch must have:
    batch norm cannot train on one.
    """
    shape: Any = module.example_shape
    layers = dense_layers(module)
    if layers is not None:
        sizes = layers[0].in_features, layers[-1].out_features
        if sizes != (prod(shape), classes):
            own = f"the model reads {sizes[0]} numbers and returns {sizes[1]}"
            problem = f"{own}, the data have {prod(shape)} and {classes} classes"
            raise InputError(problem, "give one of that size")
        return False, 1
    if any(map(nn.parameter.is_lazy, module.parameters())):
        say = "pass it some rows before you return it"
        raise InputError("the model has layers that do not know their sizes yet", say)
    if any(p.is_complex() for p in module.parameters()):
        raise InputError("the model has complex weights", "give real ones, two for each")
    if not all(isinstance(value, Tensor) for value in module.state_dict().values()):
        problem = "the state of the model holds more than tensors (get_extra_state)"
        raise InputError(problem, "keep it in buffers")
    copy, random = deepcopy(module), False
    like = next((p for p in copy.parameters() if p.is_floating_point() and p.requires_grad), None)
    if like is None:
        raise InputError("the model has no weights", "give one that can be trained")
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        for training in (True, False):
            before = torch.random.get_rng_state()
            try:
                out = copy.train(training)(like.new_zeros(2, *shape))
            except (RuntimeError, ValueError, TypeError, IndexError) as error:
                say = "for one that reads images say shape=(channels, height, width)"
                why = str(error).splitlines()[0]
                problem = f"the model cannot read rows of shape {shape} ({why})"
                raise InputError(problem, say) from error
            if not isinstance(out, Tensor) or out.shape != (2, classes):
                found = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
                problem = f"the model makes {found} of 2 rows"
                raise InputError(problem, f"return logits [rows, {classes}]")
            if training and not out.requires_grad:
                raise InputError("the logits have no gradient", "do not detach them")
            random |= not torch.equal(before, torch.random.get_rng_state())
        try:
            copy.train()(like.new_zeros(1, *shape))
        except (RuntimeError, ValueError):
            return random, 2
    return random, 1


def pays_to_stack(module: nn.Module) -> bool:
    """Say whether `torch.func.vmap` should train copies of a module, of matrix products, together.

    Convolutions become grouped ones, which are slower than models by themselves; buffers (batch
    norm), frozen weights and dropout need a model of their own. So does what `vmap` cannot follow,
    such as a look at a number: it is tried on rows of zeros.
    """
    parts = nn.modules
    kinds = (parts.conv._ConvNd, parts.dropout._DropoutNd, parts.batchnorm._BatchNorm, nn.RNNBase)
    alone = any(isinstance(part, kinds) for part in module.modules())
    frozen = any(not p.requires_grad for p in module.parameters())
    if alone or frozen or any(True for _ in module.buffers()):
        return False
    shape: Any = module.example_shape
    weights = {n: p.detach().repeat(2, *[1] * p.ndim) for n, p in module.named_parameters()}
    leaves = {name: weight.requires_grad_() for name, weight in weights.items()}
    one = partial(torch.func.functional_call, deepcopy(module).train())
    rows = next(iter(weights.values())).new_zeros(2, 2, *shape)
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            out = torch.func.vmap(one)(leaves, rows)
            torch.autograd.grad(out.sum(), [*leaves.values()], allow_unused=True)
    except Exception:  # whatever a stranger's module raises there
        return False
    return True


_ALIGN = 4  # numbers: what kernels load at once


class Modules:
    """Any `nn.Module`: ``[T, C]`` models, each with its weights in one row of `parameters`.

    So an optimizer moves all of them in one pass. Each model is a module by itself (but for
    `Vmapped`), its weights and buffers views of what is stacked here; on a GPU they run side by
    side, on streams of their own, and the weights of images lie with their channels last.
    """

    compiled = 0  # batches of so many rows pass a compiled module

    def __init__(
        self, modules: Sequence[nn.Module], models: int, shape: Sequence[int], numbers: Numbers
    ) -> None:
        self.shape, self.models, (self.device, self.dtype, self.compute) = shape, models, numbers
        self._last = self.device.type == "cuda" and len(shape) == 3
        own = {n: p for n, p in modules[0].named_parameters() if p.requires_grad}
        sizes = [_ALIGN * -(-max(1, p.numel()) // _ALIGN) for p in own.values()]
        *at, end = accumulate(sizes, initial=0)
        places = {id(p): start for p, start in zip(own.values(), at, strict=True)}
        every = modules[0].named_parameters(remove_duplicate=False)  # tied weights appear twice
        self._places = {n: (places[id(p)], p) for n, p in every if id(p) in places}
        self.own = list(own)
        flat = torch.zeros(len(modules), models, end, dtype=self.dtype, device=self.device)
        self.parameters, self._grad = [flat], torch.zeros_like(flat)
        copies = [deepcopy(module).to(self.device, self.dtype) for module in modules]
        if self._last and self.compute is torch.bfloat16:
            from ruleout.training import gpu_batch_norm, gpu_convolutions

            for copy, kernels in product(copies, (gpu_convolutions, gpu_batch_norm)):
                kernels.serve(copy, self.device)
        states, views = [copy.state_dict() for copy in copies], self.named(self.parameters)
        starts = {name: torch.stack([state[name] for state in states]) for name in states[0]}
        repeated = {name: _repeat(start, models, self.device) for name, start in starts.items()}
        for name, view in views.items():
            view.copy_(repeated.pop(name))
        self.buffers = repeated  # what changes untrained, such as running means
        self._make(copies)

    def _make(self, modules: Sequence[nn.Module]) -> None:
        places = product(range(len(modules)), range(self.models))
        self._held: dict[tuple[int, int], list[tuple[nn.Module, str, Tensor]]] = {}
        self._each = {(t, c): self._view(modules[t], t, c) for t, c in places}
        streams = range(min(len(self._each), 8) if self.device.type == "cuda" else 0)
        self._streams: list[Any] = [torch.cuda.Stream(self.device) for _ in streams]  # type: ignore[no-untyped-call]

    def _view(self, module: nn.Module, trial: int, model: int) -> nn.Module:
        """Return a copy of a module whose weights and buffers are views of the stack."""
        state = self.named([self.parameters[0][trial, model]])
        weights = {start: nn.Parameter(state[name]) for name, (start, _) in self._places.items()}
        state = {name: weights[start] for name, (start, _) in self._places.items()}
        state |= {name: value[trial, model] for name, value in self.buffers.items()}
        copy = deepcopy(module)
        copy.load_state_dict(state, assign=True)
        known = {id(value) for value in state.values()}
        every = (
            (part, *one) for part in copy.modules() for one in part.named_buffers(recurse=False)
        )
        self._held[trial, model] = [one for one in every if id(one[2]) in known]
        return copy

    def step(self, x: Tensor, loss_of: LossOf, move: Move) -> Tensor:
        try:
            loss = self._learn(x, loss_of)
        except Exception as error:
            if not self.compiled or isinstance(error, torch.OutOfMemoryError):
                raise
            self.compiled = 0  # no compiler on this machine, or an operation it does not know
            loss = self._learn(x, loss_of)
        move(0, (slice(0, len(x)), slice(0, self.models)), self._grad[: len(x)])
        return loss

    def _learn(self, x: Tensor, loss_of: LossOf) -> Tensor:
        """Return the losses, and leave the gradients in `_grad`."""
        with torch.enable_grad():
            outs = self._side_by_side(len(x), partial(self._one, x, training=True))
        logits = torch.stack([out.detach() for out in outs])
        loss, slope = loss_of(logits.view(len(x), self.models, *logits.shape[1:]))
        self._grad.zero_()
        self._side_by_side(len(x), partial(self._back, outs, slope))
        return loss

    def _back(self, outs: Sequence[Tensor], slope: Tensor, trial: int, model: int) -> None:
        weights = [p for p in self._each[trial, model].parameters() if p.requires_grad]
        out = outs[trial * self.models + model]
        grads = torch.autograd.grad(out, weights, slope[trial, model], allow_unused=True)
        self._keep(self._grad[trial, model], grads)
        self._settle(trial, model)

    def _settle(self, trial: int, model: int) -> None:
        """Bring buffers that a module put in the place of its own back into the stack."""
        for part, name, view in self._held[trial, model]:
            now = getattr(part, name)
            if now is not view and now.shape == view.shape:  # the module put another in its place
                view.copy_(now.detach())
                setattr(part, name, view)

    def _keep(self, out: Tensor, grads: Sequence[Tensor | None]) -> None:
        named = self.named([out])
        pairs = [(named[n], g) for n, g in zip(self.own, grads, strict=True) if g is not None]
        torch._foreach_copy_([place for place, _ in pairs], [grad for _, grad in pairs])

    def logits(self, x: Tensor, *, training: bool = False) -> Tensor:
        rows = self._rows(x)
        with torch.no_grad():
            outs = self._side_by_side(len(rows), partial(self._one, rows, training=training))
            if training:
                self._side_by_side(len(rows), self._settle)
        return torch.stack(outs).view(len(rows), self.models, *outs[0].shape)

    def _rows(self, x: Tensor) -> Tensor:
        """Return the rows of each trial, which may be the same for all."""
        each = x.ndim == len(self.shape) + 2
        return x if each else x.expand(len(self.parameters[0]), *x.shape)

    def _one(self, x: Tensor, trial: int, model: int, *, training: bool) -> Tensor:
        module = self._each[trial, model]
        if module.training is not training:
            module.train(training)
        # A copy: a module may write to what it reads, and others read it, too.
        order = torch.channels_last if self._last else torch.preserve_format
        rows = x[trial].clone(memory_format=order)
        with self._rounded():
            step = training and torch.is_grad_enabled()
            run = _compiled() if step and len(rows) == self.compiled else _call
            out: Tensor = run(module, rows)
        return out.to(self.dtype)

    def _rounded(self) -> torch.autocast:
        rounds = self.compute is not self.dtype
        return torch.autocast(self.device.type, self.compute, enabled=rounds)

    def _side_by_side(self, trials: int, work: Callable[[int, int], Any]) -> list[Any]:
        """Do some work for every model; on a GPU on streams that fork here and join again."""
        places = list(product(range(trials), range(self.models)))
        if not self._streams:
            return [work(*place) for place in places]
        main, found = torch.cuda.current_stream(self.device), []
        for place, stream in zip(places, cycle(self._streams)):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                found.append(work(*place))
        for stream in self._streams[: len(places)]:
            main.wait_stream(stream)
        return found

    def named(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        found = {}
        for name, (start, like) in self._places.items():
            shape, last = like.shape, self._last and like.ndim == 4
            order = (shape[0], *shape[2:], shape[1]) if last else shape
            piece = tensors[0][..., start : start + like.numel()]
            whole = piece.view((*piece.shape[:-1], *order))
            found[name] = whole.movedim(-1, -3) if last else whole
        return found


#: How many models that `vmap` does not serve train side by side, by kind of device.
SIDE_BY_SIDE = {"cuda": 8}


def _call(module: nn.Module, rows: Tensor) -> Any:
    return module(rows)


@cache
def _compiled() -> Callable[[nn.Module, Tensor], Any]:
    return torch.compile(_call, dynamic=False)  # once for all modules that are built alike


class Vmapped(Modules):
    """Modules made of matrix products: all models of a stack through `torch.func.vmap`."""

    def _make(self, modules: Sequence[nn.Module]) -> None:
        self.module = modules[0]

    def _learn(self, x: Tensor, loss_of: LossOf) -> Tensor:
        self.module.train()
        named = self.named([self.parameters[0][: len(x)].detach()])
        leaves = {name: named[name].requires_grad_() for name in self.own}
        with torch.enable_grad():
            logits = self._run(leaves, x)
        loss, slope = loss_of(logits.detach())
        grads = torch.autograd.grad(logits, [*leaves.values()], slope, allow_unused=True)
        self._keep(self._grad.zero_()[: len(x)], grads)
        return loss

    def logits(self, x: Tensor, *, training: bool = False) -> Tensor:
        self.module.train(training)
        rows = self._rows(x)
        named = self.named([self.parameters[0][: len(rows)]])
        with torch.no_grad():
            return self._run({name: named[name] for name in self.own}, rows)

    def _run(self, weights: dict[str, Tensor], x: Tensor) -> Tensor:
        one = partial(torch.func.functional_call, self.module)
        with self._rounded():
            each = torch.func.vmap(one, in_dims=(0, None))  # over configurations
            out: Tensor = torch.func.vmap(each)(weights, x.clone())  # over trials
        return out.to(self.dtype)


Net: TypeAlias = Dense | Modules  # C configurations of the modules of some trials, as one


def build_net(
    modules: Sequence[nn.Module], models: int, rows: int | Sequence[int], numbers: Numbers
) -> Net:
    """Return the fastest stack that serves these modules, for rows of a width or of a shape."""
    if isinstance(rows, int):
        kind = _Perceptrons if _served(modules[0], numbers) else Dense
        return kind(modules, models, rows, numbers)
    many = len(modules) * models > 1 and pays_to_stack(modules[0])
    return (Vmapped if many else Modules)(modules, models, rows, numbers)


def _served(module: nn.Module, numbers: Numbers) -> bool:
    device, dtype, compute = numbers
    if device.type != "cuda" or not dtype == compute == torch.float32:
        return False
    if find_spec("triton") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    from ruleout.training.gpu_kernels import CLASSES, ready

    layers = dense_layers(module) or []
    return len(layers) == 2 and layers[1].out_features <= CLASSES and ready(device)


class _Perceptrons(Dense):
    """One hidden layer and few classes, by kernels that pass over the hidden layer once."""

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        from ruleout.training.gpu_kernels import up

        hidden = self._first(x)
        weight, bias = (p[: len(hidden)] for p in self.parameters[1:])
        return up(hidden, weight, bias).transpose(2, 3), [hidden]

    def _backward(self, x: Tensor, reads: list[Tensor], slope: Tensor, move: Move) -> None:
        from ruleout.training.gpu_kernels import down

        (hidden,), active = reads, len(slope)
        every = (slice(0, active), slice(0, self.models))
        weight, bias = down(hidden, self.parameters[1][:active], slope.contiguous())
        move(1, every, weight)
        move(2, every, bias)
        move(0, every, Product(hidden.flatten(1, 2), x))
