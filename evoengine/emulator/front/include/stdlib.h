// abs and its like are in cuda_runtime.h, which is always there.
#pragma once
