/* The parts that depend on the processor. A port to another processor replaces this file and
 * calls.S. */
#ifndef SERT_ARCH_H
#define SERT_ARCH_H

#include <stdint.h>
#include <ucontext.h>

#if !defined(__x86_64__) || !defined(__LP64__) || !defined(__GLIBC__)
#error "libsert runs on Linux with glibc, x86-64. A port: this file and calls.S."
#endif

/* The position of the thread when the signal came, its stack pointer, and the result of a system
 * call. */
static inline uintptr_t arch_pc(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
}
static inline uintptr_t arch_sp(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
}
static inline long arch_result(const ucontext_t *at) {
    return (long)at->uc_mcontext.gregs[REG_RAX];
}

/* The control words of both floating-point units. A signal handler starts with the kernel's. */
struct arch_rounding {
    uint32_t mxcsr;
    uint16_t x87;
};

static inline void arch_keep_rounding(struct arch_rounding *kept) {
    __asm__ volatile("stmxcsr %0" : "=m"(kept->mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(kept->x87));
}
static inline void arch_restore_rounding(const struct arch_rounding *kept) {
    __asm__ volatile("fninit; fldcw %0" : : "m"(kept->x87));
    __asm__ volatile("ldmxcsr %0" : : "m"(kept->mxcsr));
}

static inline uintptr_t arch_here(void) {
    return (uintptr_t)__builtin_frame_address(0);
}

#endif
