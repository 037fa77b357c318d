"""The references of the tasks of this folder, and what is good enough in single precision.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def log_probs(logits, temperature):
    """logits [N, V] -> the logarithms of their softmax at `temperature` [N, V], and the entropy of
    each row [N].
    """
    logs = torch.log_softmax(logits / temperature, dim=1)
    return logs, -(logs.exp() * logs).sum(dim=1)


def norm_codes(x, weight, eps):
    """x [N, C] -> the rows' RMS norm times weight [C] in codes of 8 bits [N, C], and the step of
    each row [N]: its largest absolute value has the code 127 or -127.
    """
    normal = x / torch.sqrt((x * x).mean(dim=1, keepdim=True) + eps) * weight
    steps = normal.abs().amax(dim=1) / 127
    return torch.round(normal / steps[:, None]).clamp(-127, 127).to(torch.int8), steps


def nearest_centroid(points, centroids):
    """points [N, D], centroids [K, D] -> the nearest centroid of each point [N], and the square of
    its distance [N].
    """
    squares = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(dim=2)
    distance, ids = squares.min(dim=1)
    return ids.int(), distance


def advantages(rewards, values, done, gamma, trace):
    """Generalised advantage estimation: rewards and done [B, T], values [B, T + 1] -> advantages
    and returns [B, T]. Nothing behind a step that is done counts for it.
    """
    steps = rewards.shape[1]
    alive = 1 - done.to(rewards.dtype)
    ahead = torch.zeros_like(rewards[:, 0])
    found = []
    for t in reversed(range(steps)):
        surprise = rewards[:, t] + gamma * values[:, t + 1] * alive[:, t] - values[:, t]
        ahead = surprise + gamma * trace * alive[:, t] * ahead
        found.append(ahead)
    result = torch.stack(found[::-1], dim=1)
    return result, result + values[:, :steps]


def lora_linear(x, weight, down, up, strength):
    """x [M, K] times weight [N, K] transposed, plus `strength` times its way through down [R, K]
    and up [N, R] -> [M, N].
    """
    return x @ weight.T + strength * ((x @ down.T) @ up.T)


def lora_half(x, weight, down, up, strength):
    """Single precision within, rounded once."""
    wide = (t.float() for t in (x, weight, down, up))
    return lora_linear(*wide, strength).half()
