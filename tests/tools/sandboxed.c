/* SPDX-License-Identifier: MIT */
/* sandboxed WHICH COMMAND [ARG...] - runs COMMAND in a sandbox of a kind in which semlock is used.
 *
 *	agent          the seccomp filter with which coding agents switch the network off: calls on
 *	               sockets fail with EPERM; socketpair(2), read(2), write(2), recvfrom(2),
 *	               sendmsg(2) and recvmsg(2) do not
 *	agent-no-unix  the same, and socket(2) fails for AF_UNIX, too
 *	container      what the default profile of a container refuses
 *	landlock       its scopes: no abstract socket of a process outside, and no signal to one
 *
 * Exits with 69 if the kernel cannot do this, 64 on misuse, 127 if COMMAND cannot be run.
 *
 * The filters are raw BPF, and the kernel's interface is declared here: musl-gcc has no
 * <linux/...>. */
#include <config.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../lib/seccomp.h"

enum { EXIT_USAGE = 64, EXIT_UNAVAILABLE = 69, EXIT_NOTFOUND = 127 };

static noreturn void fail(int status, const char *what)
{
	fprintf(stderr, "sandboxed: %s: %s\n", what, strerror(errno));
	exit(status);
}

/* ---- BPF; linux/audit.h ---- */

#if defined __x86_64__
#define ARCHITECTURE 0xc000003eU
#elif defined __i386__
#define ARCHITECTURE 0x40000003U
#elif defined __aarch64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE 0xc00000b7U
#elif defined __arm__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE 0x40000028U
#elif defined __s390x__
#define ARCHITECTURE 0x80000016U
#elif defined __powerpc64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE 0xc0000015U
#elif defined __riscv && __riscv_xlen == 64
#define ARCHITECTURE 0xc00000f3U
#else
#define ARCHITECTURE 0U /* not known */
#endif

static struct instruction filter[512];
static unsigned short filled;

static void add(unsigned code, uint32_t k, unsigned yes, unsigned no)
{
	if (filled == sizeof filter / sizeof *filter)
		abort();
	filter[filled++] = (struct instruction){(uint16_t)code, (uint8_t)yes, (uint8_t)no, k};
}

static void load_number(void)
{
	add(LOAD, offsetof(struct call, number), 0, 0);
}

/* The low half of argument I. */
static void load_argument(unsigned i)
{
	const unsigned low = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0;

	add(LOAD, (uint32_t)(offsetof(struct call, arguments) + 8 * i + low), 0, 0);
}

static void refuse_by(long number, int errnum)
{
	add(IF_EQUAL, (uint32_t)number, 0, 1);
	add(RETURN, REFUSE(errnum), 0, 0);
}

static void refuse(long number)
{
	refuse_by(number, EPERM);
}

/* Refuse the call unless its first argument is VALUE. */
static void refuse_unless(long number, uint32_t value)
{
	add(IF_EQUAL, (uint32_t)number, 0, 4);
	load_argument(0);
	add(IF_EQUAL, value, 1, 0);
	add(RETURN, REFUSE(EPERM), 0, 0);
	load_number();
}

/* Refuse the call if argument I has one of BITS. */
static void refuse_bits(long number, unsigned i, uint32_t bits)
{
	add(IF_EQUAL, (uint32_t)number, 0, 4);
	load_argument(i);
	add(IF_ANY_BIT, bits, 0, 1);
	add(RETURN, REFUSE(EPERM), 0, 0);
	load_number();
}

/* ---- what each refuses ---- */

static const long of_network[] = {
    SYS_connect,
    SYS_bind,
    SYS_listen,
#ifdef SYS_accept
    SYS_accept,
#endif
    SYS_accept4,
    SYS_getpeername,
    SYS_getsockname,
    SYS_shutdown,
    SYS_sendto,
    SYS_sendmmsg,
    SYS_recvmmsg,
#ifdef SYS_recvmmsg_time64
    SYS_recvmmsg_time64,
#endif
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_ptrace,
#ifdef SYS_io_uring_setup
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
#endif
};

/* On some architectures one call makes all of these: its first argument is the number of which. */
#ifdef SYS_socketcall
static void refuse_socketcalls(int no_unix)
{
	/* connect, bind, listen, accept, getsockname, getpeername, send, sendto, shutdown,
	 * setsockopt, getsockopt, accept4, recvmmsg, sendmmsg; and, with NO_UNIX, socket */
	static const uint8_t calls[] = {3, 2, 4, 5, 6, 7, 9, 11, 13, 14, 15, 18, 19, 20, 1};
	const unsigned count = sizeof calls - !no_unix;

	add(IF_EQUAL, SYS_socketcall, 0, 2 * count + 2);
	load_argument(0);
	for (unsigned i = 0; i < count; i++)
		refuse(calls[i]);
	load_number();
}
#endif

static void fill_for_agent(int no_unix)
{
	for (size_t i = 0; i < sizeof of_network / sizeof *of_network; i++)
		refuse(of_network[i]);
	if (no_unix)
		refuse(SYS_socket);
	else
		refuse_unless(SYS_socket, AF_UNIX);
	refuse_unless(SYS_socketpair, AF_UNIX);
#ifdef SYS_socketcall
	refuse_socketcalls(no_unix);
#endif
}

/* Newer profiles permit those for process descriptors, and older ones do not. */
static const long of_container[] = {
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_perf_event_open,
#ifdef SYS_bpf
    SYS_bpf,
#endif
#ifdef SYS_userfaultfd
    SYS_userfaultfd,
#endif
#ifdef SYS_pidfd_open
    SYS_pidfd_open,
#endif
#ifdef SYS_pidfd_getfd
    SYS_pidfd_getfd,
#endif
};

static void fill_for_container(int unused)
{
	const uint32_t new_namespaces = 0x7e020000; /* CLONE_NEW... */
#ifdef __s390x__
	const unsigned flags = 1; /* the stack comes first */
#else
	const unsigned flags = 0;
#endif

	(void)unused;
	for (size_t i = 0; i < sizeof of_container / sizeof *of_container; i++)
		refuse(of_container[i]);
	refuse_bits(SYS_clone, flags, new_namespaces);
#ifdef SYS_clone3
	/* Its flags are in memory, which no filter sees.  With ENOSYS the C library calls clone. */
	refuse_by(SYS_clone3, ENOSYS);
#endif
}

/* ---- the sandbox begins ---- */

static void install(void (*fill)(int), int argument)
{
	struct {
		unsigned short length;
		const struct instruction *filter;
	} program = {.filter = filter};
	const int mode_filter = 2;

	if (ARCHITECTURE == 0) {
		errno = ENOSYS;
		fail(EXIT_UNAVAILABLE, "no filter is known for this architecture");
	}
	/* programs for another architecture, beside a 32-bit build, have other numbers */
	add(LOAD, offsetof(struct call, architecture), 0, 0);
	add(IF_EQUAL, ARCHITECTURE, 1, 0);
	add(RETURN, ALLOW, 0, 0);
	load_number();
	fill(argument);
	add(RETURN, ALLOW, 0, 0);
	program.length = filled;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, mode_filter, &program, 0, 0) != 0)
		fail(EXIT_UNAVAILABLE, "the kernel takes no seccomp filter");
}

/* linux/landlock.h; the numbers are the same on every architecture. */
static void install_landlock(void)
{
	enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, SCOPE_SOCKET = 1, SCOPE_SIGNAL = 2 };
	const struct {
		uint64_t files, network, scoped;
	} rules = {.scoped = SCOPE_SOCKET | SCOPE_SIGNAL};
	const int fd = (int)syscall(CREATE_RULESET, &rules, sizeof rules, 0);

	if (fd < 0)
		fail(EXIT_UNAVAILABLE, "the kernel has no scopes of Landlock (Linux 6.12)");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(RESTRICT_SELF, fd, 0) != 0)
		fail(EXIT_UNAVAILABLE, "Landlock cannot be switched on");
	close(fd);
}

int main(int argc, char **argv)
{
	const char *which = argc > 2 ? argv[1] : "";

	if (strcmp(which, "agent") == 0) {
		install(fill_for_agent, 0);
	} else if (strcmp(which, "agent-no-unix") == 0) {
		install(fill_for_agent, 1);
	} else if (strcmp(which, "container") == 0) {
		install(fill_for_container, 0);
	} else if (strcmp(which, "landlock") == 0) {
		install_landlock();
	} else {
		fprintf(stderr,
		    "usage: sandboxed agent|agent-no-unix|container|landlock COMMAND [ARG...]\n");
		return EXIT_USAGE;
	}
	execvp(argv[2], argv + 2);
	fail(EXIT_NOTFOUND, argv[2]);
}
