/* long calls_enter(const volatile int *pending, long number, long a, long b, long c, long d, long
 * e, long f)
 *
 * Makes a system call that may block. Between `calls_begin` and `calls_end` the call has had no
 * effect yet, so a signal there may abandon the request. At `calls_end` with -EINTR it had no
 * effect either. If a stop is pending already, the call is not entered and -EINTR is returned. The
 * idea is musl's (src/thread/x86_64/syscall_cp.s). */
#if defined(__x86_64__)
    .text
    .globl calls_enter
    .hidden calls_enter
    .globl calls_begin
    .hidden calls_begin
    .globl calls_end
    .hidden calls_end
    .type calls_enter, @function
calls_enter:
    .cfi_startproc
    movq %rdi, %r11
    movq %rsi, %rax
    movq %rdx, %rdi
    movq %rcx, %rsi
    movq %r8, %rdx
    movq %r9, %r10
    movq 8(%rsp), %r8
    movq 16(%rsp), %r9
calls_begin:
    cmpl $0, (%r11)
    jne 1f
    syscall
calls_end:
    ret
1:  movq $-4, %rax
    ret
    .cfi_endproc
    .size calls_enter, .-calls_enter
/* Pushes a register, and pops it again. */
    .macro save register
    pushq \register
    .cfi_adjust_cfa_offset 8
    .endm
    .macro restore register
    popq \register
    .cfi_adjust_cfa_offset -8
    .endm

/* These go on in the real function as if the program had called it directly (processes.c). */
    .globl vfork
    .type vfork, @function
    .globl __vfork
    .type __vfork, @function
vfork:
__vfork:
    .cfi_startproc
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call processes_vfork
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size vfork, .-vfork

    .globl dlopen
    .type dlopen, @function
dlopen:
    .cfi_startproc
    save %rdi
    save %rsi
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call processes_dlopen
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    restore %rsi
    restore %rdi
    jmp *%rax
    .cfi_endproc
    .size dlopen, .-dlopen

    .globl dlmopen
    .type dlmopen, @function
dlmopen:
    .cfi_startproc
    save %rdi
    save %rsi
    save %rdx
    call processes_dlmopen
    restore %rdx
    restore %rsi
    restore %rdi
    jmp *%rax
    .cfi_endproc
    .size dlmopen, .-dlmopen

/* The number and five arguments are in registers, and the sixth is on the stack (keeps.c). */
    .globl syscall
    .type syscall, @function
syscall:
    .cfi_startproc
    save %rdi
    save %rsi
    save %rdx
    save %rcx
    save %r8
    save %r9
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 56(%rsp), %rsi
    call keeps_syscall
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    restore %r9
    restore %r8
    restore %rcx
    restore %rdx
    restore %rsi
    restore %rdi
    jmp *%rax
    .cfi_endproc
    .size syscall, .-syscall
    .section .note.GNU-stack, "", @progbits
#endif
