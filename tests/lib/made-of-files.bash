# SPDX-License-Identifier: MIT
# For the tests of all locks that are made of files.
# shellcheck shell=bash

METHODS="excl link mkdir symlink rename"

# each CMD...: runs CMD for each method, which is $method, in a directory of its own
each() {
	for method in $METHODS; do
		mkdir "at.$method"
		cd "at.$method" || return
		[ "$method" != rename ] || "$SEMLOCK" -m rename --init l true
		echo "method $method:"
		"$@" # not before "||": any failure inside of the command fails the test
		cd ..
	done
}
