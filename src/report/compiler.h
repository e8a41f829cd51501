/* SPDX-License-Identifier: MIT */
/* report/compiler.h - what gcc and clang are told of a function. */
#ifndef SEMLOCK_REPORT_COMPILER_H
#define SEMLOCK_REPORT_COMPILER_H

/* Argument F is a format of printf(3), and A the first of its arguments. */
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

/* A function that few starts call: kept apart from those that every start calls, so that these
 * share few pages of code and of stack. */
#define COLD __attribute__((cold, noinline))

#endif
