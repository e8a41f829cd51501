#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Each row of src/cli/rules.def is broken by a command line, and is then the message.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

# The words of the rows, one a line.
reasons() {
	sed -n '/^RULE(\|^UNKNOWN_TO(/,/)$/p' "$SOURCE/src/cli/rules.def" |
		awk '/^    "/ { sub(/^ *"/, ""); text = text $0; if (sub(/"\)$/, "", text)) { print text; text = "" } else sub(/"$/, "", text) }'
}

# Command lines, one for each row.  8 is an open descriptor.
command_lines() {
	cat <<-'END'
		--json L true
		--who -n L
		--who --fcntl
		--held L true
		--held -n L
		--init L true
		--stale=1 L true
		--on-lost=warn L true
		-m excl --ttl=9 L true
		--ttl=9 L true
		--hold --ttl=9 -o L
		--hold=1 --detach --ttl=9 L
		-m excl 8
		-m excl -s L true
		-m mkdir -j 2 L true
		-m symlink --mode=600 L true
		-m rename -F L true
		-F zoo://h/x true
		--rm zoo://h/x true
		--mode=600 zoo://h/x true
		--toggle zoo://h/x true
		--first zoo://h/x true
		--on-lost=HUP zoo://h/x true
		--hold L true
		--hold --fd 8
		--hold --nested L
		--hold --run-timeout=1 L
		--detach L true
		--hold --detach L
		--hold=1 --detach --signal=INT L
		--keep-place -w 1 L true
		--hold=1 --detach --keep-place L
		--hold=1 --detach --keep-place -w 1 --supersede L
		--hold=1 --detach L true
		--supersede --queue-max=1 L true
		--supersede -n L true
		--supersede --first L true
		--supersede -f M L true
		--supersede etcd://h/x true
		--hold=1 --detach --keep-place -w 1 --replace L
		--release=1 -n L
		--resume=1 -s L
		--resume=1 L true
		--release=1 L true
		-n --replace L true
		--replace -f L2 L true
		--toggle 8
		--replace --nested L true
		--older=1 L true
		-F -o L true
		-F --rm L true
		-F --run-timeout=1 L true
		--first --queue-max=1 L true
		--log=log 8
		--note=why -F L true
		--queue-max=1 -f L2 L true
		--min-hold=1 -F L true
		--run-timeout=1 8
		--signal=HUP L true
		--kill-after=1 L true
		-F --die-with-parent L true
		--name=N --fd 8 true
		--nested -f L2 L true
		-u L true
		-m posix 8
		--rm 8
		--mode=600 8
		-f L 8
		--take=2 L true
		-j 2 --take=3 L true
		-j 2 -s L true
		-j 2 -f L2 L true
		-j 3 --take=2 zoo://h/x true
		-j 2 --start=1 L true
	END
}

@test "each row of rules.def refuses a command line, and nothing is run or made" {
	exec 8<.
	while read -r words; do
		# shellcheck disable=SC2086 # words
		expect_status 64 "$SEMLOCK" ${words/%true/touch ran} </dev/null
		[ "$(wc -l <.err)" -eq 1 ] || complain "$words: $err"
		sed 's/^semlock: //' .err >>seen
		if [ -e L ] || [ -e ran ] || [ -e log ]; then complain "$words left something: $(ls)"; fi
	done < <(command_lines)
	exec 8<&-
	diff <(reasons | sort) <(sort seen) || complain "rules.def (<) and the messages (>) differ"
}

@test "the last of -s and -x, of --replace and --toggle, is the one that counts" {
	expect_status 0 "$SEMLOCK" -m excl -s -x L true
	expect_status 64 "$SEMLOCK" -m excl -x -s L true
	expect_status 64 "$SEMLOCK" -m excl -s -f L2 -x L true # L2 would be shared
	expect_status 0 "$SEMLOCK" -m excl -f L2 -s -x L true
	expect_status 0 "$SEMLOCK" -j 2 -s -x L true
	expect_status 0 "$SEMLOCK" --toggle --replace --older=1 L true
	refused 64 "--older requires --replace" "$SEMLOCK" --replace --toggle --older=1 L true
	exec 8>>L
	expect_status 0 "$SEMLOCK" -u -x 8
	expect_status 1 "$SEMLOCK" -n L true
	expect_status 0 "$SEMLOCK" -x -u 8
	expect_status 0 "$SEMLOCK" -n L true
	exec 8>&-
}
