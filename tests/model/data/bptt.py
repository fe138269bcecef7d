# SPDX-License-Identifier: Apache-2.0
"""Makes bptt.npz: latents, final state and gradients of PyTorch's nn.LSTM + nn.Linear (+ a direct
linear path) over two windows, the state carried over without its gradient, for test_bptt.c.
Usage: python3 bptt.py"""
import numpy as np
import torch

torch.manual_seed(3)
T, B, F, H, L, Z = 7, 3, 5, 6, 2, 4
lstm = torch.nn.LSTM(F, H, L)
linear = torch.nn.Linear(H, Z)
skip = torch.nn.Linear(F, Z, bias=False)
out = {"sizes": np.array([T, B, F, H, L, Z], dtype=np.int64)}
flat, parameters = [], []
with torch.no_grad():
    for k in range(L):  # the C code has one bias a layer
        getattr(lstm, f"bias_hh_l{k}").zero_()
for k in range(L):
    parameters += [getattr(lstm, f"{name}_l{k}") for name in ("weight_ih", "weight_hh", "bias_ih")]
parameters += [linear.weight, linear.bias, skip.weight]
out["weights"] = torch.cat([p.detach().reshape(-1) for p in parameters]).numpy()

state = None
for window in range(2):
    x = torch.randn(T, B, F)
    d = torch.randn(T, B, Z)
    for p in parameters:
        p.grad = None
    h, state = lstm(x, state)
    z = linear(h) + skip(x)
    (z * d).sum().backward()
    state = tuple(s.detach() for s in state)
    out[f"x{window}"] = x.numpy()
    out[f"d{window}"] = d.numpy()
    out[f"z{window}"] = z.detach().numpy()
    out[f"gradient{window}"] = torch.cat([p.grad.reshape(-1) for p in parameters]).numpy()
    out[f"state{window}"] = torch.stack(state, 1).numpy()  # [L][2][B][H]
np.savez("bptt.npz", **out)
