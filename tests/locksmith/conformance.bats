#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/locksmith-test: does an engine keep the rules of semlock-locksmith(7)?  A rule that an engine breaks is found.
# tests/lib/engine.py needs no server, and breaks the rule that it is told to.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/remote

prepare() { unset SEMLOCK_LOOK_EVERY; }
ENGINE=$SOURCE/tests/lib/engine.py

# What breaks which rule.  "plain": an engine that offers nothing.
broken() {
	cat <<-'END'
		greeting|LOCKSMITH 2 is its first line
		boast|OK has lease=
		keeps|at the end of input it says FREE
		no-release|at the end of input it says FREE
		late-free|at the end of input it says FREE
		unlock|UNLOCK lets the lock go
		two|a waiter says WAIT
		no-mode|a waiter says WAIT
		slow|--no-wait: BUSY
		late|--wait=1: BUSY
		at-once|--wait without SECS
		mode|--mode=exclusive is the default
		outlives|a waiter whose input ends
		dead-waiter|a waiter that is killed
		renews-late|from START on it renews
		unstarted|without START it renews nothing
		never-lost|without START it renews nothing
		fields|START may have more fields
		long-line|of a line that is too long
		signals|HUP, INT, QUIT and TERM
		blocks|without room for its lines
		never-lost|a helper that was stopped
		early|a helper that was stopped
		early|the lock of a helper that was killed
		who-dies|the lock of a helper that was killed is had by --no-wait
		noise|nobody reads its lines any more
		deaf|what it held is removed
		leaves|a server that is away in the middle
		who-free|--who of a free lock
		who-pid|--who of a held lock
		who-status|--who of a held lock
		any-option|an option that it does not know
		password|a URL with a password
		two|--mode=shared: two at once
		accepts plain|--mode=shared is ERR 64
		same-slot|--slots=2: two at once
		accepts plain|--slots=2 is ERR 64
		queue-max|--queue-max=1: with one
		accepts plain|--queue-max=1 is ERR 64
		order|waiters are served in the order
		token|the token rises
		away-busy|a server that is not there: --no-wait
		away-late|a server that is not there: --wait
		who-away|a server that is not there: --who
		blanks|each line is a word
		control|each line is a word
	END
}

# breaks WAY RULE: with an engine that is broken so, RULE is.
breaks() {
	local name=${1// /-}-${2//[^a-zA-Z0-9]/-}
	case $1 in *plain) export ENGINE_PLAIN=yes ;; esac
	if ENGINE_BREAKS=${1% plain} "$SOURCE/contrib/locksmith-test" --ttl=2 --away=engine://away/l --only="$2" \
		--stop="touch $PWD/$name.away" --cont="rm $PWD/$name.away" --remove="rm $PWD/$name" "$ENGINE" "engine://$PWD/$name" >"$name.said"; then complain "not found: $1" "$(cat "$name.said")"; fi
	grep -q "^BROKEN  $2" "$name.said"
}

@test "an engine that keeps each rule passes, and so does the one in shell" {
	conforms --away=engine://away/l --stop="touch $PWD/queue.away" --cont="rm $PWD/queue.away" --remove="rm $PWD/queue" \
		"$ENGINE" "engine://$PWD/queue"
	[ "$(grep -c '^ok' rules)" -ge 36 ]
	conforms --away-env=ENGINE_SERVER=away --only="that is not there" "$ENGINE" "engine://$PWD/queue"
	[ "$(grep -c '^ok' rules)" -eq 3 ]
	conforms "$SOURCE/contrib/locksmith-demo" "demo://$PWD/lock"
	ENGINE_PLAIN=yes conforms "$ENGINE" "engine://$PWD/plain"
}

@test "each rule is found broken with an engine that breaks it" {
	local way rule pids=() pid failed=0
	while IFS='|' read -r way rule; do
		breaks "$way" "$rule" 3>&- &
		pids+=($!)
		[ $((${#pids[@]} % 6)) -ne 0 ] || wait "${pids[-6]}" || failed=1
	done < <(broken)
	for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
	[ $failed -eq 0 ]
	sed -n 's/^@rule("\([^"]*\)".*/\1/p' "$SOURCE/contrib/locksmith-test" >all
	while read -r rule; do
		broken | cut -d'|' -f2 | while read -r words; do [[ $rule != "$words"* ]] || echo found; done | grep -q found ||
			complain "no engine breaks: $rule"
	done <all
}

@test "locksmith-test reports usage errors, and answers --help" {
	expect_status 64 "$SOURCE/contrib/locksmith-test" "$ENGINE"
	expect_status 0 "$SOURCE/contrib/locksmith-test" --help
	grep -q "HELPER URL" .out
}
