// cuda::std is std here.
#pragma once
namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}
}  // namespace cuda
