/* SPDX-License-Identifier: MIT */
/* inside KEY MILLISECONDS|wait [COUNTER] - the command under a lock: reports to the referee when it
 * enters and leaves.  In between it increments the number in the file COUNTER, in steps, and stays:
 * for a time, or until the referee releases it.  99: another command is inside; 98: no referee; 97:
 * the counter fails. */
#include <config.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static FILE *from_referee;
static int referee;

static void connect_to_referee(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	FILE *file = fopen("/run/referee", "r");
	unsigned port;

	if (!file || fscanf(file, "%u", &port) != 1)
		exit(98);
	fclose(file);
	address.sin_port = htons((unsigned short)port);
	inet_pton(AF_INET, "10.0.2.2", &address.sin_addr); /* the machine that QEMU runs on */
	referee = socket(AF_INET, SOCK_STREAM, 0);
	if (referee < 0 || connect(referee, (struct sockaddr *)&address, sizeof address) != 0)
		exit(98);
	from_referee = fdopen(referee, "r");
	if (!from_referee)
		exit(98);
	setvbuf(from_referee, NULL, _IONBF, 0); /* poll(2) looks at the socket, not at a buffer */
}

static void tell(const char *line)
{
	if (write(referee, line, strlen(line)) < 0)
		exit(98);
}

/* Reads the referee's next line into LINE; answers its question whether this command lives, and
 * reads on. */
static const char *heard(char line[64])
{
	do {
		if (!fgets(line, 64, from_referee))
			exit(98);
		if (strcmp(line, "are you there\n") == 0)
			tell("here\n");
	} while (strcmp(line, "are you there\n") == 0);
	return line;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void stay(const char *how)
{
	struct pollfd poll_referee = {.fd = referee, .events = POLLIN};
	int64_t end = now_ms() + atol(how), left = 0;
	char line[64];

	do {
		if (strcmp(how, "wait") != 0 && (left = end - now_ms()) <= 0)
			return;
		if (poll(&poll_referee, 1, left > 0 ? (int)left : -1) == 0)
			return;
	} while (fgets(line, sizeof line, from_referee) && strcmp(line, "go\n") != 0 &&
		 (tell("here\n"), 1));
}

static long counter_read(int fd)
{
	char text[32];
	ssize_t length = read(fd, text, sizeof text - 1);

	text[length > 0 ? length : 0] = '\0';
	return atol(text);
}

static int counter_write(int fd, long count)
{
	char text[32];
	int length = snprintf(text, sizeof text, "%ld\n", count);

	return pwrite(fd, text, (size_t)length, 0) == length && close(fd) == 0 ? 0 : 97;
}

int main(int argc, char **argv)
{
	char line[200], host[65] = "", reply[64];
	int counter = -1, status;
	long count = 0;

	if (argc < 3)
		return 64;
	gethostname(host, sizeof host - 1);
	connect_to_referee();
	snprintf(line, sizeof line, "in %.100s %s:%ld\n", argv[1], host, (long)getpid());
	tell(line);
	status = strcmp(heard(reply), "one\n") == 0 ? 0 : 99;
	if (argc > 3) {
		counter = open(argv[3], O_RDWR | O_CREAT, 0666);
		count = counter_read(counter);
	}
	stay(argv[2]);
	if (argc > 3 && counter_write(counter, count + 1) != 0)
		status = 97;
	tell("out\n");
	while (strcmp(heard(reply), "out\n") != 0)
		;
	return status;
}
