"""The references of the tasks of this folder, and how one of their inputs is drawn.

A function is called with float64 tensors for the verdict, and as a baseline with the inputs' own.
"""

import torch


def positive(generator, shape):
    """Symmetric matrices that are positive definite and well conditioned."""
    rows = torch.randn(shape, generator=generator, device=generator.device, dtype=torch.float64)
    matrix = rows @ rows.transpose(-2, -1) / shape[-1]
    return (matrix + 0.5 * torch.eye(shape[-1], dtype=torch.float64, device=matrix.device)).float()


def small_cholesky(a):
    """a [B, N, N] -> the lower factors [B, N, N], with zeros above the diagonal."""
    return torch.linalg.cholesky(a)


def block_scaled_product(a, b, a_scales, b_scales):
    """a [M, K] and b [N, K], a scale for every 32 codes of a row -> a b^T [M, N]."""
    left = a.to(a_scales.dtype) * a_scales.repeat_interleave(32, dim=1)
    right = b.to(b_scales.dtype) * b_scales.repeat_interleave(32, dim=1)
    return left @ right.T


def row_fft(real, imaginary):
    """The discrete Fourier transform of rows [B, N], without a factor."""
    out = torch.fft.fft(torch.complex(real, imaginary), dim=-1)
    return out.real.contiguous(), out.imag.contiguous()


def alignment_loss(scores, labels, frames, counts):
    """scores [B, T, C] of which frames [B] are used, labels [B, L] of which counts [B] are used;
    class 0 is the blank -> minus the logarithm of the sum, over all alignments of the labels with
    the frames, of the exponentials of their scores [B].
    """
    losses = []
    for own, names, steps, count in zip(
        scores, labels.long(), frames.tolist(), counts.tolist(), strict=True
    ):
        states = torch.zeros(2 * int(count) + 1, dtype=torch.long, device=scores.device)
        states[1::2] = names[: int(count)]
        skips = torch.zeros_like(states, dtype=torch.bool)
        skips[2:] = (states[2:] != 0) & (states[2:] != states[:-2])
        never = own.new_full((2,), -torch.inf)
        sums = own.new_full(states.shape, -torch.inf)
        sums[:2] = own[0, states[:2]]
        for frame in own[1 : int(steps)]:
            padded = torch.cat((never, sums))
            skipped = padded[:-2].masked_fill(~skips, -torch.inf)
            ways = torch.stack((padded[2:], padded[1:-1], skipped))
            sums = ways.logsumexp(dim=0) + frame[states]
        losses.append(-sums[-2:].logsumexp(dim=0))
    return torch.stack(losses)


def moved_image(image, flow):
    """image [P, H, W], flow [2, H, W] -> [P, H, W]: every plane read at x + flow[0], y + flow[1],
    linear between its elements and zero outside.
    """
    high, wide = image.shape[1:]
    down = torch.arange(high, device=image.device)[:, None]
    across = torch.arange(wide, device=image.device)[None, :]
    whole = flow.floor()
    parts = flow - whole
    out = torch.zeros_like(image)
    for r in (0, 1):
        for c in (0, 1):
            x, y = across + whole[0].long() + c, down + whole[1].long() + r
            inside = (x >= 0) & (x < wide) & (y >= 0) & (y < high)
            weight = (parts[0] if c else 1 - parts[0]) * (parts[1] if r else 1 - parts[1])
            found = image[:, y.clamp(0, high - 1), x.clamp(0, wide - 1)]
            out = out + found * (weight * inside)
    return out
