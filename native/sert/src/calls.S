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
#elif defined(__aarch64__)
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
    mov x9, x0
    mov x8, x1
    mov x0, x2
    mov x1, x3
    mov x2, x4
    mov x3, x5
    mov x4, x6
    mov x5, x7
calls_begin:
    ldr w10, [x9]
    cbnz w10, 1f
    svc #0
calls_end:
    ret
1:  mov x0, #-4
    ret
    .cfi_endproc
    .size calls_enter, .-calls_enter

/* Defines the function `name`: it calls `ask` with its own first argument and its return address,
 * and goes on in the function that `ask` returns, as if the program had called that one directly
 * (processes.c, keeps.c). The registers of all arguments are kept. `hint #34` (bti c) permits
 * indirect calls in pages that demand it, `hint #25` (paciasp) signs the return address, and
 * `hint #29` (autiasp) checks it. Processors without these features ignore the hints. */
    .macro goes_on name, ask
    .globl \name
    .type \name, @function
\name:
    .cfi_startproc
    hint #34
    mov x16, x30
    hint #25
    .cfi_negate_ra_state
    stp x29, x30, [sp, #-80]!
    .cfi_def_cfa_offset 80
    .cfi_offset x29, -80
    .cfi_offset x30, -72
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    mov x1, x16
    bl \ask
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa_offset 0
    hint #29
    .cfi_negate_ra_state
    br x16
    .cfi_endproc
    .size \name, .-\name
    .endm

    goes_on vfork, processes_vfork
    goes_on __vfork, processes_vfork
    goes_on dlopen, processes_dlopen
    goes_on dlmopen, processes_dlmopen
    goes_on syscall, keeps_syscall

/* The file supports BTI (1) and signed return addresses (2). */
    .section .note.gnu.property, "a"
    .p2align 3
    .word 4, 16, 5
    .asciz "GNU"
    .word 0xc0000000, 4, 3, 0
#endif
    .section .note.GNU-stack, "", %progbits
