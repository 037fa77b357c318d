"""One step of AdamW (arXiv 1711.05101): the reference and its baselines.

All tensors are [N]. parameter, first and second are updated in place and returned in this order; correction1
and correction2 are 1 - beta1**step and 1 - beta2**step.
"""

import torch


def forward(
    gradient, parameter, first, second, rate, decay, beta1, beta2, eps, correction1, correction2
):
    """The definition, as torch.optim.AdamW computes it."""
    first = beta1 * first + (1 - beta1) * gradient
    second = beta2 * second + (1 - beta2) * gradient * gradient
    size = (second / correction2).sqrt() + eps
    return parameter * (1 - rate * decay) - rate * (first / correction1) / size, first, second


separate = forward

compiled = torch.compile(forward, dynamic=False)


def fused(gradient, parameter, first, second, rate, decay, beta1, beta2, eps, STEP):
    """torch's own kernel, in place."""
    steps = [torch.full((), STEP, dtype=torch.float32, device=parameter.device)]
    torch._fused_adamw_(
        [parameter], [gradient], [first], [second], [], steps,
        lr=rate, beta1=beta1, beta2=beta2, weight_decay=decay, eps=eps, amsgrad=False, maximize=False,
    )
    return parameter, first, second
