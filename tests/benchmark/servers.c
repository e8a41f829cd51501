/* SPDX-License-Identifier: MIT */
/* Locks on the servers that tests/benchmark/with-servers has started; its variables name them. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static char etcd_url[200], etcd_endpoints[200], ftp_url[200], ftp_loop[1000];

static bool find_servers(void)
{
	const char *etcd = getenv("BENCH_ETCD"), *ftp = getenv("BENCH_FTP");
	static const char curl[] = "curl -s -o /dev/null -u lock:secret";

	if (etcd == NULL || ftp == NULL)
		return false;
	snprintf(etcd_url, sizeof etcd_url, "etcd://%s/bench", etcd);
	snprintf(etcd_endpoints, sizeof etcd_endpoints, "--endpoints=%s", etcd);
	snprintf(ftp_url, sizeof ftp_url, "ftp://lock@%s/bench", ftp);
	snprintf(ftp_loop, sizeof ftp_loop,
	    "server=ftp://%s/; until %s -Q 'MKD bench.dir' $server; do sleep .05; done; " TRUE
	    "; %s -Q 'RMD bench.dir' $server",
	    ftp, curl, curl);
	return true;
}

static void among(const char *title, const char *key,
    double (*measure)(const struct entrant *entrant, int number), int number, int rounds,
    int repeats)
{
	contest(&(struct contest){title, key, measure, number, rounds, repeats,
	    (const struct entrant[]){
		{"etcdctl lock", {"etcdctl", etcd_endpoints, "lock", "bench-ctl", TRUE}, 0},
		{"semlock etcd://", {tools.semlock, etcd_url, TRUE}, 0},
		{"semlock ftp://", {tools.semlock, ftp_url, TRUE}, 0},
		{"a loop of curl -Q MKD", {"sh", "-c", ftp_loop}, 0},
		{NULL, {NULL}, 0},
	    },
	    NULL});
}

void bench_servers(void)
{
	if (!find_servers()) {
		print_title("locks on a server: left out, no server was started");
		return;
	}
	among("a lock on a server, nobody else there", "server-wrap", one_run, 0,
	    tools.rounds / 2 + 1, 3);
	among("10 started at once", "server-10", drained, 10, tools.rounds / 4 + 1, 1);
}
