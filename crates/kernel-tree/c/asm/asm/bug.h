#ifndef _LAB_ASM_BUG_H
#define _LAB_ASM_BUG_H
/* A bug ends the run with the place in the kernel, not the process. */
#ifndef __ASSEMBLY__
#define HAVE_ARCH_BUG
void lab_bug(const char *file, int line, const char *function) __attribute__((noreturn));
#define BUG() lab_bug(__FILE__, __LINE__, __func__)
#endif
#include <asm-generic/bug.h>
#endif
