# SPDX-License-Identifier: MIT
# Locks on a server without a server: contrib/locksmith-demo is the helper.
# shellcheck shell=bash disable=SC2154 # SOURCE is of helpers.bash

# demo_helpers [SCHEME...]: makes ./helpers the directory of the helpers: the one of demo://, and for each SCHEME one with
# which every URL is the lock demo://$PWD/remote.lock.
demo_helpers() {
	local scheme
	mkdir helpers
	ln -s "$SOURCE/contrib/locksmith-demo" helpers/semlock-locksmith-demo
	for scheme; do
		printf '#!/bin/bash\nexec "%s" "${@:1:$#-1}" "demo://%s"\n' "$SOURCE/contrib/locksmith-demo" "$PWD/remote.lock" \
			>"helpers/semlock-locksmith-$scheme"
		chmod +x "helpers/semlock-locksmith-$scheme"
	done
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers
}
