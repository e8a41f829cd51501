/* SPDX-License-Identifier: MIT */
/* report/compiler.h - function attributes for gcc and clang. */
#ifndef SEMLOCK_REPORT_COMPILER_H
#define SEMLOCK_REPORT_COMPILER_H

/* Argument F is a printf(3) format, and argument A the first that it formats. */
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

#endif
