# SPDX-License-Identifier: MIT
# Interactive shells at a terminal.
# shellcheck shell=bash

# in_terminal SHELL <SCRIPT: an interactive shell follows SCRIPT; what the terminal shows is in $out.
# (After ^C, SCRIPT waits for the prompt: a shell may throw away what was typed before.)
in_terminal() {
	local shell=$1
	if [ "$shell" = bash ]; then set -- bash --norc --noprofile --noediting -i; else set -- dash -i; fi
	ENV='' PS1='$ ' HISTFILE='' expect_status 0 "$PROBE" pty "$@"
}

# reads_after_fg SHELL: semlock $WAY, started in the background, stops when its command reads from the terminal, and after fg
# the command reads.  It prints whether the flock on the last word of $WAY is held meanwhile.
reads_after_fg() {
	export WAY
	in_terminal "$1" <<-'END'
		line "$SEMLOCK" $WAY sh -c 'read -r words; echo "got $words"' &
		line "$PROBE" state $! T && echo "it is stopped: $("$PROBE" free "${WAY##* }")"
		expect it is stopped
		line fg
		line hello
		expect got hello
		line echo "status $?"
		expect status 0
		line exit
	END
}
