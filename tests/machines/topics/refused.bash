# SPDX-License-Identifier: MIT
# refused.bash - what semlock-methods(7) says is refused on a file system of several machines, and how.
# shellcheck shell=bash

refused() { # STATUS ARGUMENTS - of semlock
	local output
	output=$(expect "$1" on a "semlock $2 echo the command runs" 2>&1) || { echo "$output"; return 1; }
	echo "$output"
	[[ $output && $output != *'the command runs'* ]]
}

refused_on_nfs() { # VERSION
	local at=/n$1/refused$1 method
	on a "mkdir -p $at/directory"
	for method in $kernel_methods; do
		check "NFS $1, $method: --rm is refused" refused 69 "--rm -m $method $at/rm-$method"
	done
	check "NFS $1: a directory is refused" refused 65 "$at/directory"
	check "NFS $1, flock: -j is refused" refused 69 "-j 3 $at/slots"
	check "NFS $1, mkdir: --stale is refused" refused 69 "--stale=12 -m mkdir $at/stale"
	rename_refused "NFS $1" "$at"
}

rename_refused() { # NAME DIRECTORY
	check "$1, rename: --init is refused" refused 69 "--init -m rename $2/rename"
	on a ": >$2/token"
	check "$1, rename: a token is refused" refused 69 "-m rename $2/token"
}

topic_refused() {
	local version
	for version in 3 4.0 4.2; do refused_on_nfs $version; done
}
