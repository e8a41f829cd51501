# SPDX-License-Identifier: MIT
# semlock.sh - shell functions under a lock.  For dash, bash, busybox sh, ksh93, mksh and zsh.
#
#	. /usr/local/share/semlock/semlock.sh
#
#	with_lock [OPTION...] LOCK COMMAND [ARG...]   COMMAND, often a function, while LOCK is held
#	lock_acquire [OPTION...] LOCK                 LOCK from here on ...
#	lock_release LOCK                             ... to here, or to the end of the shell
#	lock_detach PID [OPTION...] LOCK              LOCK from here on, in the background; its ID is in lock_id ...
#	lock_end ID LOCK                              ... to here, in any later shell, or to the end of PID
#
# LOCK is a file, created if it does not exist.  Options, as with semlock: -n, -w SECS, -s, -x, -E N.
# COMMAND runs in this shell, so what it sets stays set.  The status is COMMAND's, or semlock's if LOCK
# could not be taken: 1 (or N of -E) if it is busy.
#
# lock_detach takes all options of semlock.  Its lock belongs to no shell; lock_end fails with 76 if the hold has
# already ended.  With --keep-place, at the end of -w the status is 1 and lock_id is the ID of the place:
# semlock --resume="$lock_id" LOCK.
#
# with_lock can be nested, also for the same LOCK: a shell and its subshells do not wait for locks that
# they already hold.  A script or a semlock that COMMAND starts does wait.
#
# As with semlock, a process that COMMAND leaves running keeps LOCK, unless its descriptor 9 is closed
# (9>&-).  (In ksh93 and mksh a process started after lock_acquire does not inherit its descriptor.)  A
# killed shell holds nothing, but its command under with_lock holds LOCK until it ends.
#
# Uses descriptor 9 within with_lock, and the first free one from 8 down to 3 for each lock_acquire.
# shellcheck shell=sh disable=SC3013 # all of these shells have -ef, POSIX since 2024

: "${_lock_depth:=0}"

# _lock_parse OPTION... LOCK: sets _lock_wait, _lock_mode and _lock_busy, each one word for semlock,
# _lock_file, and in _lock_shift the number of arguments used.  0, or 64 with a message.
_lock_parse() {
	_lock_wait=-x _lock_mode=-x _lock_busy=1 _lock_shift=$#
	while :; do
		case ${1-} in
		-n) _lock_wait=-n ;;
		-s | -x) _lock_mode=$1 ;;
		-w) shift; _lock_wait=-w${1-} ;;
		-E) shift; _lock_busy=${1-} ;;
		-- ) shift; break ;;
		-*) echo "semlock.sh: $1: unknown option" >&2; return 64 ;;
		*) break ;;
		esac
		shift
	done
	if [ -z "${1-}" ]; then
		echo 'semlock.sh: no LOCK given' >&2
		return 64
	fi
	# The name must mean the same file after a cd.
	case $1 in
	/*) _lock_file=$1 ;;
	*) _lock_file=$PWD/$1 ;;
	esac
	_lock_shift=$((_lock_shift - $# + 1))
}

# _lock_find FILE: 0 if this shell holds FILE, with its place in the table in _lock_at.  The places
# 3 to 8 are the descriptors of lock_acquire, those from 11 on the depths of with_lock.
_lock_find() {
	_lock_at=3
	while [ "$_lock_at" -le $((10 + _lock_depth)) ]; do
		eval "_lock_name=\${_lock_name_$_lock_at-}"
		if [ -n "$_lock_name" ]; then
			# Two names of one file are one lock, and the shell would wait for itself.
			if [ "$_lock_name" = "$1" ] || [ "$_lock_name" -ef "$1" ]; then
				return 0
			fi
		fi
		_lock_at=$((_lock_at + 1))
	done
	return 1
}

# _lock_refuse WHY: prints why the lock is refused, and returns 64.
_lock_refuse() {
	echo "semlock.sh: $_lock_file: $1" >&2
	return 64
}

# _lock_make: creates the lock file.  In zsh with noclobber, >> does not; and > alone would empty a file that another
# process has made just now.
_lock_make() {
	[ -e "$_lock_file" ] || (set -C; : >"$_lock_file") 2>/dev/null || :
}

# _lock_take FD: locks the open descriptor.  Returns 0 if the name still means the file that was locked.
# Sets _lock_again=yes if the file was removed or replaced in the meantime and must be opened again.
_lock_take() {
	_lock_again=no _lock_status=0
	# FD>&FD: ksh93 and mksh pass a descriptor above 2 to a command only if the command line names it.
	eval "semlock \"\$_lock_wait\" \"\$_lock_mode\" -E \"\$_lock_busy\" $1 $1>&$1" || _lock_status=$?
	if [ "$_lock_status" -eq 65 ] && ! [ "$_lock_file" -ef "/dev/fd/$1" ]; then
		_lock_again=yes
	fi
	return "$_lock_status"
}

# _lock_enter, _lock_leave STATUS: with_lock's part of the table; the latter keeps COMMAND's status.
_lock_enter() {
	_lock_depth=$((_lock_depth + 1))
	eval "_lock_name_$((10 + _lock_depth))=\$_lock_file _lock_mode_$((10 + _lock_depth))=\$_lock_mode"
}

_lock_leave() {
	eval "_lock_name_$((10 + _lock_depth))="
	_lock_depth=$((_lock_depth - 1)) _lock_again=no _lock_status=$1
}

with_lock() {
	_lock_parse "$@" || return
	shift "$_lock_shift"
	if _lock_find "$_lock_file"; then
		eval "_lock_name=\$_lock_mode_$_lock_at"
		if [ "$_lock_name$_lock_mode" = -s-x ]; then
			_lock_refuse 'held shared by this shell: waiting for it would never end'
			return
		fi
		"$@"
		return
	fi
	_lock_again=yes
	while [ "$_lock_again" = yes ]; do
		_lock_again=no _lock_status=66
		_lock_make
		# The braces have a 9 of their own; that of an outer with_lock returns after them, and stays locked meanwhile.
		# >> and not >: nothing happens to the file before it is locked.
		{
			if _lock_take 9; then
				_lock_enter
				"$@"	# no || after "$@": set -e must mean the same as without a lock
				_lock_leave $?
			fi
		} 9>>"$_lock_file"
	done
	return "$_lock_status"
}

lock_acquire() {
	_lock_parse "$@" || return
	if _lock_find "$_lock_file"; then
		_lock_refuse 'already held by this shell: waiting for it would never end'
		return
	fi
	_lock_fd=8
	while { true >&$_lock_fd; } 2>/dev/null; do
		_lock_fd=$((_lock_fd - 1))
		if [ $_lock_fd -lt 3 ]; then
			_lock_refuse 'no descriptor is free for it'
			return
		fi
	done
	_lock_again=yes
	while [ $_lock_again = yes ]; do
		_lock_make
		# true first: if exec fails to open the file, the shell exits.
		eval "true $_lock_fd>>\"\$_lock_file\"" || return 66
		eval "exec $_lock_fd>>\"\$_lock_file\""
		if _lock_take $_lock_fd; then
			eval "_lock_name_$_lock_fd=\$_lock_file _lock_mode_$_lock_fd=\$_lock_mode"
			return
		fi
		eval "exec $_lock_fd>&-"
	done
	return "$_lock_status"
}

lock_release() {
	_lock_parse "$@" || return
	if ! _lock_find "$_lock_file" || [ "$_lock_at" -gt 8 ]; then
		_lock_refuse 'no lock_acquire of this shell holds it'
		return
	fi
	eval "exec $_lock_at>&-"
	eval "_lock_name_$_lock_at="
}

lock_detach() {
	lock_id=
	[ $# -ge 2 ] || { echo 'semlock.sh: lock_detach PID [OPTION...] LOCK' >&2; return 64; }
	_lock_status=0
	lock_id=$(_lock_pid=$1 && shift && semlock --hold="$_lock_pid" --detach "$@") || _lock_status=$?
	lock_id=${lock_id#*id=}
	lock_id=${lock_id%% *}
	return "$_lock_status"
}

lock_end() {
	[ $# -eq 2 ] || { echo 'semlock.sh: lock_end ID LOCK' >&2; return 64; }
	semlock --release="$1" "$2"
}
