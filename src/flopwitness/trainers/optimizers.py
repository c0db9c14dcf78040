"""PyTorch's optimizers with everything declared, their moments by name, and no variant that differs in bits.

The plain form only: `fused` AdamW differs in its last bits, `fused` SGD with bf16 weights does not move them
at all (PyTorch 2.13, CPU), and `foreach` SGD with momentum differs with bf16 weights.
"""

from collections.abc import Mapping, Sequence

import torch
from torch.optim import optimizer as torch_optimizer

from flopwitness.counting.training import OptimizerKind
from flopwitness.foundation.errors import InputError
from flopwitness.trainers.config import OptimizerConfig
from flopwitness.trainers.parameters import Parameter

__all__ = ["Updater"]

_NAMES = {
    "first": "exp_avg",
    "second": "exp_avg_sq",
    "momentum": "momentum_buffer",
}


class Updater:
    """What turns gradients into updates of the weights that it was given."""

    def __init__(
        self,
        config: OptimizerConfig,
        parameters: Sequence[Parameter],
        weights: Mapping[str, torch.Tensor],
        moments: Mapping[str, torch.Tensor],
    ) -> None:
        """Take the weights and moments, which are changed in place.

        Args:
            config: The optimizer.
            parameters: Those that learn.
            weights: By name.
            moments: By kind and name; all that `config.moments` says.
        """
        self._is_adamw = config.name is OptimizerKind.ADAMW
        self._learning = [weights[parameter.name] for parameter in parameters]
        groups = [
            {
                "params": [
                    weights[parameter.name] for parameter in parameters if parameter.has_decay is decays
                ],
                "weight_decay": config.weight_decay if decays else 0.0,
            }
            for decays in (True, False)
        ]
        self._optimizer = _make_optimizer(config, [group for group in groups if group["params"]])
        for parameter in parameters:
            self._optimizer.state[weights[parameter.name]] = {
                _NAMES[kind]: moments[f"{kind}/{parameter.name}"] for kind in config.moments
            }

    def update(self, *, learning_rate: float, updates: int) -> None:
        """Update all weights and moments by their gradients.

        Args:
            learning_rate: The rate of this step.
            updates: Updates so far; AdamW's correction of its moments follows from it.

        Raises:
            InputError: Somebody hooked into all of PyTorch's optimizers.

        Side effects:
            Changes the weights and moments in place.
        """
        _check_unhooked()
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        if self._is_adamw:
            for weight in self._learning:
                self._optimizer.state[weight]["step"] = torch.tensor(
                    float(updates), dtype=torch.float32, device="cpu"
                )
        self._optimizer.step()


def _check_unhooked() -> None:
    """No code that runs with every optimizer's step: it could change weights that nobody declared."""
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        if hooks := getattr(torch_optimizer, name):
            raise InputError(
                "another code's hook runs with every optimizer's step",
                where=f"torch.optim.optimizer.{name}",
                expected="none while a declared run is trained",
                found=str(len(hooks)),
            )


def _make_optimizer(config: OptimizerConfig, groups: list[dict[str, object]]) -> torch.optim.Optimizer:
    if config.name is OptimizerKind.ADAMW:
        return torch.optim.AdamW(
            groups,
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            eps=config.eps,
            weight_decay=config.weight_decay,
            foreach=False,
            fused=False,
        )
    return torch.optim.SGD(
        groups,
        lr=config.learning_rate,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
        foreach=False,
        fused=False,
    )
