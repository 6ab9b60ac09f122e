/* The parts that depend on the processor. A port to another processor adds its part here and in
 * calls.S.
 *
 * The rest of the library assumes no order of memory accesses beyond that of C11: a store that
 * another thread reads is at least a release if the reader follows it to other memory. */
#ifndef SERT_ARCH_H
#define SERT_ARCH_H

#include <elf.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#if !defined(__linux__) || !defined(__GLIBC__) || !defined(__LP64__) \
    || !(defined(__x86_64__) || defined(__AARCH64EL__))
#error "libsert runs on Linux with glibc, on x86-64 and little-endian aarch64. A port: this file and calls.S."
#endif

/* Each processor has these definitions.
 *
 * ARCH_NAME and ARCH_MACHINE are its name, and its number in ELF files. The name of glibc's loader
 * begins with ARCH_LOADER.
 *
 * ARCH_OLD_CALLS are system calls that newer processors do not have and that leave nothing behind.
 * They are the labels of a switch (keeps.c).
 *
 * arch_pc, arch_sp and arch_result return the position of the thread when the signal came, its
 * stack pointer, and the result of a system call.
 *
 * arch_keep_rounding and arch_restore_rounding are for the control words of the floating-point
 * units, which siglongjmp does not restore.
 *
 * arch_here returns the end of the running function's frame: it is the same for all functions that
 * one frame calls. arch_pause is a hint to the processor that the thread spins. */

#if defined(__x86_64__)

#define ARCH_NAME "x86-64"
#define ARCH_MACHINE EM_X86_64
#define ARCH_LOADER "ld-linux-x86-64"
#define ARCH_OLD_CALLS                                                                                 \
    case SYS_time:                                                                                     \
    case SYS_poll:                                                                                     \
    case SYS_select:                                                                                   \
    case SYS_epoll_wait:                                                                               \
    case SYS_stat:                                                                                     \
    case SYS_lstat:                                                                                    \
    case SYS_access:                                                                                   \
    case SYS_readlink:

static inline uintptr_t arch_pc(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
}
static inline uintptr_t arch_sp(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
}
static inline long arch_result(const ucontext_t *at) {
    return (long)at->uc_mcontext.gregs[REG_RAX];
}

/* There are two units. A signal handler starts with the kernel's control words. */
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

/* The frame pointer is next to the return address, whatever the size of the frame. */
static inline __attribute__((always_inline)) uintptr_t arch_here(void) {
    return (uintptr_t)__builtin_frame_address(0);
}

static inline void arch_pause(void) {
    __builtin_ia32_pause();
}

#elif defined(__aarch64__)

#define ARCH_NAME "aarch64"
#define ARCH_MACHINE EM_AARCH64
#define ARCH_LOADER "ld-linux-aarch64"
#define ARCH_OLD_CALLS

static inline uintptr_t arch_pc(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.pc;
}
static inline uintptr_t arch_sp(const ucontext_t *at) {
    return (uintptr_t)at->uc_mcontext.sp;
}
static inline long arch_result(const ucontext_t *at) {
    return (long)at->uc_mcontext.regs[0];
}

/* There is one unit. Its flags are in a register of their own. */
struct arch_rounding {
    uint64_t fpcr, fpsr;
};

static inline void arch_keep_rounding(struct arch_rounding *kept) {
    __asm__ volatile("mrs %0, fpcr" : "=r"(kept->fpcr));
    __asm__ volatile("mrs %0, fpsr" : "=r"(kept->fpsr));
}
static inline void arch_restore_rounding(const struct arch_rounding *kept) {
    __asm__ volatile("msr fpcr, %0" : : "r"(kept->fpcr));
    __asm__ volatile("msr fpsr, %0" : : "r"(kept->fpsr));
}

/* The frame pointer is at the low end of the frame, so it depends on the size of the frame. */
#ifdef __clang__
#error "libsert for aarch64 needs GCC: Clang's __builtin_dwarf_cfa depends on the size of the frame."
#endif
static inline __attribute__((always_inline)) uintptr_t arch_here(void) {
    return (uintptr_t)__builtin_dwarf_cfa();
}

static inline void arch_pause(void) {
    __asm__ volatile("yield");
}

#endif

#endif
