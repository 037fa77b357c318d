"""The references of the tasks of this folder, and how some of their inputs are drawn.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch
from torch.nn import functional

IGNORED = -1  # the target of a row that does not count


def some_ignored(generator, shape, V):  # noqa: N803 - a dimension
    """Targets below V, of which every sixth or so is ignored."""
    device = generator.device
    targets = torch.randint(V, shape, generator=generator, device=device)
    dropped = torch.rand(shape, generator=generator, device=device) < 0.17
    return targets.masked_fill(dropped, IGNORED).int()


def capped_decode(q, k, v, lengths, scale, cap):
    """One query a sequence, q [B, KV * G, D], over the first lengths [B] of its keys [B, T, KV, D]
    -> the attention [B, KV * G, D] with scores cap * tanh(score / cap), and the logarithms of the
    sums of their exponentials [B, KV * G].
    """
    groups = q.shape[1] // k.shape[2]
    keys, values = (t.repeat_interleave(groups, dim=2) for t in (k, v))
    scores = cap * torch.tanh(torch.einsum("bhd,bthd->bht", q, keys) * scale / cap)
    place = torch.arange(k.shape[1], device=q.device)
    hidden = place[None, None, :] >= lengths.long()[:, None, None]
    scores = scores.masked_fill(hidden, -torch.inf)
    out = torch.einsum("bht,bthd->bhd", scores.softmax(dim=-1), values)
    return out, torch.logsumexp(scores, dim=-1)


def smoothed_loss(logits, target, grad, smoothing):
    """logits [N, V] -> the cross entropy of each row [N] with `smoothing` spread over all classes,
    and the gradient of the logits [N, V] under grad [N]; both are 0 where the target is ignored.
    """
    kept = target != IGNORED
    logs = torch.log_softmax(logits, dim=1)
    wanted = functional.one_hot(target.long().clamp(min=0), logits.shape[1]).to(logits.dtype)
    wanted = (1 - smoothing) * wanted + smoothing / logits.shape[1]
    loss = torch.where(kept, -(wanted * logs).sum(dim=1), 0)
    dlogits = torch.where(kept[:, None], (logs.exp() - wanted) * grad[:, None], 0)
    return loss, dlogits


def gated_recurrence(x, gate, start):
    """x, gate [B, T, C], start [B, C] -> every state h = keep * h + (1 - keep) * x with
    keep = sigmoid(gate), and the last one.
    """
    keep, state, states = torch.sigmoid(gate), start, []
    for t in range(x.shape[1]):
        state = keep[:, t] * state + (1 - keep[:, t]) * x[:, t]
        states.append(state)
    return torch.stack(states, dim=1), state


def instance_norm(x, weight, bias, eps, slope):
    """x [N, C, H, W] normalised in every plane, times weight [C] plus bias [C], negative results
    times slope; with the means and the inverse deviations of the planes [N, C].
    """
    mean, var = x.mean(dim=(2, 3)), x.var(dim=(2, 3), unbiased=False)
    inverse = 1 / torch.sqrt(var + eps)
    y = (x - mean[..., None, None]) * inverse[..., None, None]
    y = y * weight[:, None, None] + bias[:, None, None]
    return torch.where(y > 0, y, slope * y), mean, inverse


def partial_rotary(qk, positions, cosines, sines, scale, HQ, R):  # noqa: N803 - dimensions
    """qk [B, S, HQ + HK, D], the first R columns of each head turned by the row of the tables
    [P, R / 2] of its position [B, S] -> queries times scale [B, HQ, S, D], keys [B, HK, S, D].
    """
    cos, sin = (t[positions.long()][:, :, None, :] for t in (cosines, sines))
    low, high, rest = qk[..., : R // 2], qk[..., R // 2 : R], qk[..., R:]
    turned = torch.cat([low * cos - high * sin, high * cos + low * sin, rest], dim=-1)
    q, k = turned[:, :, :HQ], turned[:, :, HQ:]
    return (q * scale).transpose(1, 2).contiguous(), k.transpose(1, 2).contiguous()


def conv_with_state(x, state, weight, bias):
    """x [B, C, L] behind the inputs before it, state [B, C, KW - 1] -> silu of its causal
    convolution with weight [C, KW] plus bias [C], and the last KW - 1 inputs.
    """
    channels, taps = weight.shape
    before = torch.cat([state, x], dim=2)
    sums = functional.conv1d(before, weight[:, None, :], bias, groups=channels)
    return functional.silu(sums), before[:, :, -(taps - 1) :].contiguous()
