// Asynchronous copies from global to shared memory, in groups.
#pragma once
#if __CUDA_ARCH__ >= 800
// The last `zeros` bytes are not read but become zeros.
EV void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0) {
    const unsigned int to = (unsigned int)__cvta_generic_to_shared(shared), read = (unsigned int)(bytes - zeros);
    if (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(read) : "memory");
    else if (bytes == 8) asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(global), "r"(read) : "memory");
    else if (bytes == 4) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(global), "r"(read) : "memory");
    else __trap();  // the size must be 4, 8 or 16
}
EV void __pipeline_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` of the latest groups are on their way; the instruction takes a constant.
EV void __pipeline_wait_prior(size_t pending) {
    switch (pending) {
        case 0: asm volatile("cp.async.wait_group 0;" ::: "memory"); break;
        case 1: asm volatile("cp.async.wait_group 1;" ::: "memory"); break;
        case 2: asm volatile("cp.async.wait_group 2;" ::: "memory"); break;
        case 3: asm volatile("cp.async.wait_group 3;" ::: "memory"); break;
        case 4: asm volatile("cp.async.wait_group 4;" ::: "memory"); break;
        case 5: asm volatile("cp.async.wait_group 5;" ::: "memory"); break;
        case 6: asm volatile("cp.async.wait_group 6;" ::: "memory"); break;
        case 7: asm volatile("cp.async.wait_group 7;" ::: "memory"); break;
        default: asm volatile("cp.async.wait_group 8;" ::: "memory"); break;  // waiting for more than asked is allowed
    }
}
#endif
