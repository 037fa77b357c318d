// memcpy and memset are built in.
#pragma once
#include <stddef.h>
