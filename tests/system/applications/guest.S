# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# A kernel for a virtual machine (multiboot): writes FIRST to LAST over and over, a word of each cache line, and checks
# before each write that the last one is still there. Prints a '.' for each pass, an 'X' and stops if a word is wrong.
        .set DEBUG_CONSOLE, 0xe9
        .set LINE, 64
        .set PAGE, 4096
        .set PAUSE, 5000                # turns after each page: a pass must take a while
        .globl _start
        .text
        .align 4
        .long 0x1badb002, 0, -0x1badb002
_start: xor %ebp, %ebp                  # the pass
pass:   mov $FIRST, %edi
page:   xor %ecx, %ecx
word:   lea (%edi,%ecx), %ebx
        mov %ebx, %edx                  # each word has its address plus the pass
        add %ebp, %edx
        test %ebp, %ebp
        jz store
        cmp (%ebx), %edx
        jne wrong
store:  inc %edx
        mov %edx, (%ebx)
        add $LINE, %ecx
        cmp $PAGE, %ecx
        jb word
        mov $PAUSE, %ecx
pause:  dec %ecx
        jnz pause
        add $PAGE, %edi
        cmp $LAST, %edi
        jb page
        inc %ebp
        mov $'.', %al
        out %al, $DEBUG_CONSOLE
        jmp pass
wrong:  mov $'X', %al
        out %al, $DEBUG_CONSOLE
        cli
halt:   hlt
        jmp halt
