"""The emulator: PTX on this machine's cores, checked mode, modelled times. Neither CuPy nor a CUDA
build of torch is needed.
"""
