#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# contrib/tldr/semlock.md: a page of tldr's, whose examples run.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"
load ../lib/demo

PAGE=$SOURCE/contrib/tldr/semlock.md

@test "tldr: the page has tldr's form: a title, a summary, up to 8 examples" {
	awk 'NR == 1 { good = $0 == "# semlock"; next }
		/^$/ { next }
		/^> .*\.$/ { if (examples) bad = NR; next }
		/^- [A-Z].*:$/ { if (open) bad = NR; open = 1; examples++; next }
		/^`.*`$/ { if (!open) bad = NR; open = 0; next }
		{ bad = NR }
		END { if (!good || bad || open || examples < 5 || examples > 8) { print "line " bad; exit 1 } }' "$PAGE" ||
		complain "not as tldr's pages are"
}

# filled LENGTH: its examples with words of our own in the places of {{words}}; of {{[-s|--long]}} the one of LENGTH
filled() {
	sed -n 's/^`\(.*\)`$/\1/p' "$PAGE" | sed -E -e "s/\\{\\{\\[(-[a-zA-Z])\\|(--[a-z-]+)\\]\\}\\}/\\$1/g" \
		-e 's#\{\{path/to/lock_file\}\}#tldr.lock#g; s#--name=\{\{name\}\}#tldr.lock#; s#\{\{command\}\}#echo ran#' \
		-e 's#\{\{command1 && command2\}\}#true \&\& echo ran#; s#\{\{process_id\}\}#'$$'#; s#\{\{etcd:[^}]*\}\}#etcd://h/l#' \
		-e 's#--detach ([^;]*); (.*)\{\{id\}\}#--detach \1 >id; \2$(sed "s/.*id=//" id)#'
}

@test "tldr: each example works, with short and with long options" {
	demo_helpers etcd
	ln -s "$SEMLOCK" bin/semlock 2>/dev/null || true
	PATH=$PWD/bin:$PATH
	for length in 1 2; do
		filled $length >lines
		[ "$(wc -l <lines)" -ge 5 ]
		! grep -q '[{}]' lines || complain "$(cat lines)"
		while IFS= read -r line; do
			expect_status 0 sh -c "$line" || return
			[[ $line != *"echo ran"* || $out == ran ]] || complain "$line: $out"
		done <lines
	done
}
