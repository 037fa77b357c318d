// Its contents are in cuda_runtime.h, which is always there.
#pragma once
