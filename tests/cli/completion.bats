#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The completions of contrib/completion, typed into bash, zsh and fish.
load "${HELPERS:-$BATS_TEST_DIRNAME/../lib/helpers.bash}"

SHELLS="bash zsh fish"
# fish 3.1, of Debian 11, completes a part of a name to all that contain it: it has a test of its own.
case $(fish --version 2>&1) in
*" "[12].* | *" "3.[01].*)
	SHELLS="bash zsh"
	OLD_FISH=yes
	;;
esac

prepare() {
	export HOME=$PWD XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD XDG_CACHE_HOME=$PWD LC_ALL=C.UTF-8
	mkdir -p .local/state/semlock
	touch .local/state/semlock/bats-nightly a.lock
	mkdir helpers
	touch helpers/semlock-locksmith-{ftp,ftps,zoo+1}
	export SEMLOCK_LOCKSMITH_DIR=$PWD/helpers PATH=$PWD/bin:$PATH
	export ZSH_DUMP=$BATS_FILE_TMPDIR/zsh.dump
	few_commands
	lines=() wanted=()
	sed -n 's/^OPTION([A-Z_]*, "\([a-zA-Z]*\)", "\([a-z -]*\)", "\([^"]*\)",.*/\3|\1|\2/p' "$SOURCE/src/cli/options.def" >table
}

# few_commands: $few is the PATH of the shells, which list all commands there for each line: themselves, what the completions
# call, and what the lines have for a command.
few_commands() {
	local command
	few=$PWD/bin:$PWD/few
	mkdir few
	for command in bash fish zsh awk cat env false grep head id ls mv rm sed sh sort stat tr uname; do
		! command -v "$command" >/dev/null || ln -s "$(command -v "$command")" few/
	done
}

# The long options of semlock that take an argument as $1 says (required, optional, no).
long() {
	of_kind "$1" | cut -d'|' -f3 | tr ' ' '\n' | sed 's/^/--/'
}

# The letters likewise.
short() {
	of_kind "$1" | cut -d'|' -f2 | grep -o . | sed 's/^/-/'
}

# The rows of the table whose argument is so: "=N" required, "[=N]" optional; " N" is none.
of_kind() {
	case $1 in
	required) grep '^=' table ;;
	optional) grep '^\[=' table ;;
	no) grep '^[ |]' table ;;
	esac
}

# completed SHELL LINE...: what completion.py prints, without the part before a = and after it.
completed() {
	local shell=$1 file
	shift
	file=$(echo "$SOURCE/contrib/completion/$shell"/*)
	FILE=$file capture env PATH="$few" /usr/bin/python3 "$SOURCE/tests/lib/completion.py" "$shell" "$@"
	[ "$status" -eq 0 ] || complain "$shell: $err" || return
	ways=$(sed 's/^--[a-z-]*=\(.\)/\1/; s/\([^=]\)=$/\1/; /^$/d' <<<"$out")
}

# completes LINE WAY...: every shell completes LINE to these words and to no others.  all_complete checks all
# lines together: a shell that has loaded its completions has every line typed into it.
completes() {
	lines+=("$1")
	shift
	wanted+=("$(printf '%s\n' "$@" | sort)")
}

all_complete() {
	local shell way got n
	for shell in $SHELLS; do
		completed "$shell" "${lines[@]}" || return
		n=0 got=
		while IFS= read -r way; do
			if [ "$way" != == ]; then
				got+=$way$'\n'
				continue
			fi
			[ "$(sort <<<"${got%$'\n'}")" = "${wanted[n]}" ] ||
				complain "$shell: ${lines[n]}" "$got" "instead of ${wanted[n]}" || return
			n=$((n + 1)) got=
		done <<<"$ways"
		[ "$n" -eq ${#lines[@]} ] || complain "$shell: only $n lines" || return
	done
}

@test "every option of semlock is known to every shell, and no other" {
	{
		long required
		long optional
		long no
		short required
		short no
	} >wanted
	[ "$(wc -l <wanted)" -ge 58 ] || complain "the table of options is not where it was"
	for shell in $SHELLS; do
		completed "$shell" "semlock -" "semlock --"
		diff <(sort wanted) <(grep -v '^==$' <<<"$ways" | sort -u) || complain "in $shell"
	done
}

# An option without a value is followed by LOCK and COMMAND, the others by a value first.
@test "every shell completes the command after an option and its value" {
	set --
	for option in $(long no) $(long optional) $(short no); do
		case $option in
		--who | --held | --hold | --detach | --keep-place | --help | --version | --command | -c | -h | -V) ;;
		*) set -- "$@" "semlock $option a.lock fals" ;;
		esac
	done
	for option in $(long required) $(short required); do
		case $option in
		--release | --resume) ;; # runs no command
		--fd | --name) set -- "$@" "semlock $option 8 fals" ;;
		--*) set -- "$@" "semlock $option 8 a.lock fals" "semlock $option=8 a.lock fals" ;;
		*) set -- "$@" "semlock $option 8 a.lock fals" "semlock -n${option#-} 8 a.lock fals" "semlock ${option}8 a.lock fals" ;;
		esac
	done
	[ $# -ge 75 ] || complain "only $# lines"
	for shell in $SHELLS; do
		completed "$shell" "$@"
		[ "$(grep -c '^==$' <<<"$ways")" -eq $# ]
		n=0
		while read -r way; do
			n=$((n + 1))
			[ "$way" = false ] || complain "$shell: ${!n}: '$way'" || break
			read -r way
			[ "$way" = == ] || complain "$shell: ${!n}: '$way' as well" || break
		done <<<"$ways"
		[ $n -eq $# ]
	done
}

@test "methods are those of --help" {
	# shellcheck disable=SC2046 # words
	completes "semlock -m " $("$SEMLOCK" --help | sed -n 's/; made of files://; s/^METHOD: //p')
	completes "semlock -n --method=ex" excl
	completes "semlock --method mk" mkdir
	all_complete
}

# seen_by SHELL LINE...: what a person sees at a terminal, after twice the tabulator behind each LINE, is in ${seen[@]}
seen_by() {
	local shell=$1 file
	shift
	file=$(echo "$SOURCE/contrib/completion/$shell"/*)
	FILE=$file expect_status 0 env PATH="$few" /usr/bin/python3 "$SOURCE/tests/lib/completion.py" --seen "$shell" "$@" || return
	out=$'\n'$out$'\n'
	mapfile -t -d $'\1' seen <<<"${out//$'\n'==$'\n'/$'\n\1'}"
}

# sees TEXT WORD...: these words are in TEXT
sees() {
	local text=$'\n'$1$'\n' word
	shift
	for word; do [[ $text == *$'\n'"$word"$'\n'* ]] || complain "$shell: no $word in" "$text" || return; done
}

@test "at a terminal, completion shows whole schemes and files, valid signals" {
	signals=$("$SEMLOCK" --help | sed -n 's/^SIG: //p')
	[ "$(wc -w <<<"$signals")" -ge 14 ]
	mkdir subdir
	for shell in $SHELLS; do
		seen_by "$shell" "semlock " "semlock --signal " "semlock --replace="
		sees "${seen[0]}" ftp:// ftps:// zoo+1:// a.lock subdir/
		if grep -qx / <<<"${seen[0]}"; then complain "$shell: a bare slash: ${seen[0]}"; fi
		for text in "${seen[1]}" "${seen[2]}"; do
			# shellcheck disable=SC2086 # words
			sees "$text" $signals
			if grep -qxE 'SEGV|CHLD|RTMIN.*|SIG[A-Z].*|a.lock' <<<"$text"; then complain "$shell: $text"; fi
		done
	done
}

@test "signals, what --on-lost does, names" {
	completes "semlock --signal=TER" TERM
	completes "semlock --signal KIL" KILL
	completes "semlock --replace=TST" TSTP
	completes "semlock --toggle=HU" HUP
	completes "semlock --on-lost=" kill term warn
	completes "semlock --on-lost w" warn
	completes "semlock --name=bats-n" bats-nightly
	all_complete
}

@test "the IDs of holds, after --release and --resume" {
	expect_status 0 "$SEMLOCK" --hold=$$ --detach --note='"id": "1-1-deadbeef"' -w 1 a.lock
	id=${out#OK id=}
	completes "semlock --release=${id%-*}" "$id"
	completes "semlock --resume ${id%-*}" "$id"
	all_complete
	completed bash "semlock --release="
	! grep -q deadbeef <<<"$out" || complain "$out"
	expect_status 0 "$SEMLOCK" --release="$id" a.lock
}

@test "a file's name is never run, and another user's directory not looked into" {
	# shellcheck disable=SC2016 # a name
	touch '.local/state/semlock/$(touch ran)nightly'
	for shell in $SHELLS; do
		completed "$shell" "semlock --name=bats-n" "semlock --name="
		grep -qx bats-nightly <<<"$ways" || complain "$shell: $ways"
	done
	[ -z "$(find . -name ran)" ]
	root_only "gives a directory away"
	rm .local/state/semlock/*ran*
	chown 65534 .local/state/semlock
	for shell in $SHELLS; do
		completed "$shell" "semlock --name=bats-n"
		if grep -q nightly <<<"$ways"; then complain "$shell: $ways"; fi
	done
}

@test "lock files and servers, also of -f, and all of them after --who" {
	completes "semlock -n a." a.lock
	completes "semlock ft" ftp:// ftps://
	completes "semlock zo" zoo+1://
	completes "semlock -f a." a.lock
	completes "semlock -s --file=a." a.lock
	completes "semlock --who a.lock a." a.lock
	completes "semlock --hold a." a.lock
	completes "semlock --held a." a.lock
	completes "semlock --held a.lock a." a.lock
	completes "semlock --hold=1 --detach a." a.lock
	completes "semlock --hold=1 --detach --keep-place a." a.lock
	completes "semlock --json --who a." a.lock
	all_complete
}

@test "the command, and then what the command's own completion says" {
	completes "semlock a.lock fals" false
	completes "semlock a.lock -- fals" false
	completes "semlock etcd://h1,h2/job fals" false
	completes "semlock -w 10 ftp://me@h/job fals" false
	completes "semlock a.lock grep --recursi" --recursive
	completes "semlock --name=x grep --recursi" --recursive
	completes "semlock --method=flock -f ftp://h/x a.lock -- grep --recursi" --recursive
	completes "semlock a.lock -" -c --command
	all_complete
}

@test "fish before 3.2 completes options, methods, files and commands" {
	[ -n "${OLD_FISH-}" ] || skip "$(fish --version) has the tests of all shells"
	completed fish "semlock -" "semlock -n a." "semlock -n --method=ex" "semlock a.lock fals"
	for way in --who --wait -j a.lock excl false; do
		grep -qxe "$way" <<<"$ways" || complain "not $way: $ways"
	done
}

# bash-completion finds the file by its name, and zsh and fish by their rules.
@test "installed, they are where the shells look" {
	[ -n "${BUILD:-}" ] || BUILD=$(dirname "$SEMLOCK")
	expect_status 0 make -C "$BUILD" install-data DESTDIR="$PWD/dest"
	(cd dest && find . -path '*sem*' -type f) | sed -n 's,.*/share/,,p' | grep -vE '^(man|semlock|doc)/' | sort >installed
	printf '%s\n' bash-completion/completions/semlock fish/vendor_completions.d/semlock.fish \
		zsh/site-functions/_semlock | diff - installed
}
