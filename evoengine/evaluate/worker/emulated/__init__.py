"""The emulator: PTX on this machine's cores, checked mode, modelled times.

It needs neither CuPy nor a CUDA build of torch.
"""
