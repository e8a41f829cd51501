# SPDX-License-Identifier: MIT
# fish completion for semlock; in share/fish/vendor_completions.d.

# Prints the words after semlock's own options, one a line: LOCK COMMAND ARG...
# Returns 1 while the last word is still to be the value of an option.
function __semlock_operands
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --
                set -e words[1]
                break
            case --conflict-exit-code --fd --file --kill-after --length --log --method --min-hold --mode \
                    --name --older --on-lost --queue-max --run-timeout --signal --slots --stale --start --status-fd --take \
                    --timeout --ttl --wait
                set -q words[2]; or return 1
                set -e words[1]
            case '--*'
            case -
                break
            case '-*'
                # -nw 10: the first letter that takes a value ends the cluster.
                if string match -qr '^-[^Efjmw]*[Efjmw]$' -- $words[1]
                    set -q words[2]; or return 1
                    set -e words[1]
                end
            case '*'
                break
        end
        set -e words[1]
    end
    set -q words[1]; and printf '%s\n' $words
    return 0
end

# True if an option matches one of these patterns before the first operand.
function __semlock_said
    set -l words (commandline -opc)
    set -e words[1]
    set -l operands (__semlock_operands)
    set -l last (math (count $words) - (count $operands))
    test $last -gt 0; or return 1
    string match -q -- $argv[1] $words[1..$last]
end

function __semlock_without_lock
    __semlock_said '--fd*'; or __semlock_said '--name*'
end

function __semlock_only_locks
    __semlock_said '--who'; or __semlock_said '--hold*'
end

# True before the first operand, also in an option's value.
function __semlock_at_options
    set -l operands (__semlock_operands)
    test (count $operands) -eq 0
end

function __semlock_at_lock
    string match -q -- '-*=*' (commandline -ct); and return 1
    __semlock_only_locks; and return 0
    __semlock_without_lock; and return 1
    __semlock_operands >/dev/null; and __semlock_at_options
end

function __semlock_at_command
    __semlock_at_lock; and return 1
    __semlock_operands >/dev/null
end

function __semlock_command
    set -l operands (__semlock_operands)
    __semlock_without_lock; or set -e operands[1]
    test "$operands[1]" != --; or set -e operands[1]
    switch "$operands[1]"
        case -c --command
            return
    end
    set -l escaped (string escape -- $operands)
    complete -C "$escaped "(commandline -ct)
end

function __semlock_urls
    command -sq semlock; or return
    for scheme in (semlock --help 2>/dev/null | sed -n '/^Installed for SCHEME:/{n;s/  */\n/g;p;}' | grep '^[a-z]')
        printf '%s://\tlock on a server\n' $scheme
    end
end

function __semlock_names
    for directory in /run/semlock ~/.local/state/semlock
        test -d $directory -a -O $directory; or continue
        command ls $directory
    end
end

# The words of semlock --help behind METHOD: or SIG:
function __semlock_known
    command -sq semlock; or return
    semlock --help 2>/dev/null | sed -n "s/; made of files://; s/^$argv[1]: //p" | string split ' '
end

complete -c semlock -f
complete -c semlock -n __semlock_at_lock -F -a '(__semlock_urls)'
complete -c semlock -n __semlock_at_command -f -a '(__semlock_command)'
complete -c semlock -n '__semlock_at_command; and not __semlock_without_lock; and test (count (__semlock_operands)) -eq 1' -f -a '-c --command' -d 'Run a string by the shell'

complete -c semlock -n __semlock_at_options -s x -l exclusive -d 'Exclude all other holders'
complete -c semlock -n __semlock_at_options -s e -d 'Exclude all other holders'
complete -c semlock -n __semlock_at_options -s s -l shared -d 'Admit other shared holders'
complete -c semlock -n __semlock_at_options -s j -l slots -x -d 'Admit N holders'
complete -c semlock -n __semlock_at_options -s f -l file -r -a '(__semlock_urls)' -d 'Take this lock as well'
complete -c semlock -n __semlock_at_options -l name -x -a '(__semlock_names)' -d 'A lock in your own directory'
complete -c semlock -n __semlock_at_options -l nested -d 'Run under the lock of an outer semlock'
complete -c semlock -n __semlock_at_options -s m -l method -x -a '(__semlock_known METHOD)' -d 'How to lock'
complete -c semlock -n __semlock_at_options -l fcntl -d 'The same as -m ofd'
complete -c semlock -n __semlock_at_options -l start -x -d 'Lock a part of the file: from this byte'
complete -c semlock -n __semlock_at_options -l length -x -d 'Lock a part of the file: so many bytes'
complete -c semlock -n __semlock_at_options -l mode -x -d 'Permissions of a lock file that is created'
complete -c semlock -n __semlock_at_options -l take -x -d 'With -j: take K slots'
complete -c semlock -n __semlock_at_options -l init -d 'With rename: create the token'
complete -c semlock -n __semlock_at_options -l stale -x -d 'Take over from a holder without a sign of life for SECS'
complete -c semlock -n __semlock_at_options -l ttl -x -d 'Lease of a lock on a server'
complete -c semlock -n __semlock_at_options -l rm -d 'Remove the lock file at the end'
complete -c semlock -n __semlock_at_options -s n -l nonblock -d 'Do not wait'
complete -c semlock -n __semlock_at_options -l nb -d 'Do not wait'
complete -c semlock -n __semlock_at_options -l nonblocking -d 'Do not wait'
complete -c semlock -n __semlock_at_options -s w -l wait -x -d 'Wait at most SECS'
complete -c semlock -n __semlock_at_options -l timeout -x -d 'Wait at most SECS'
complete -c semlock -n __semlock_at_options -l first -d 'Wait before all others'
complete -c semlock -n __semlock_at_options -l queue-max -x -d 'Wait only if fewer than N others wait'
complete -c semlock -n __semlock_at_options -s E -l conflict-exit-code -x -d 'Exit status if the lock is busy'
complete -c semlock -n __semlock_at_options -l replace -f -a '(__semlock_known SIG)' -d 'Stop the holder, and take its place'
complete -c semlock -n __semlock_at_options -l older -x -d 'With --replace: only a holder of that age'
complete -c semlock -n __semlock_at_options -l toggle -f -a '(__semlock_known SIG)' -d 'Stop the holder, or run COMMAND'
complete -c semlock -n __semlock_at_options -s c -l command -d 'Run a string by the shell'
complete -c semlock -n __semlock_at_options -l on-lost -x -a 'warn term kill' -d 'If a lock made of files is removed'
complete -c semlock -n __semlock_at_options -s o -l close -d 'Do not let COMMAND inherit the lock'
complete -c semlock -n __semlock_at_options -s F -l no-fork -d 'Become COMMAND, without a second process'
complete -c semlock -n __semlock_at_options -l die-with-parent -d 'End with the process that started semlock'
complete -c semlock -n __semlock_at_options -l run-timeout -x -d 'End COMMAND after SECS'
complete -c semlock -n __semlock_at_options -l signal -x -a '(__semlock_known SIG)' -d 'The signal of --run-timeout'
complete -c semlock -n __semlock_at_options -l kill-after -x -d 'KILL, SECS after the signal'
complete -c semlock -n __semlock_at_options -l min-hold -x -d 'Keep the lock for SECS, also if COMMAND ends sooner'
complete -c semlock -n __semlock_at_options -l hold -d 'Hold LOCK until standard input ends'
complete -c semlock -n __semlock_at_options -l fd -x -a '0 1 2 3 4 5 6 7 8 9' -d 'Lock this open descriptor'
complete -c semlock -n __semlock_at_options -s u -l unlock -d 'Unlock the descriptor'
complete -c semlock -n __semlock_at_options -l who -d 'Print holders and waiters'
complete -c semlock -n __semlock_at_options -l json -d 'With --who: as JSON'
complete -c semlock -n __semlock_at_options -l status-fd -x -a '0 1 2 3 4 5 6 7 8 9' -d 'A line for each event'
complete -c semlock -n __semlock_at_options -l log -r -F -d 'Append a line of JSON for this run'
complete -c semlock -n __semlock_at_options -s q -l quiet -d 'Nothing about a lock that is busy'
complete -c semlock -n __semlock_at_options -s v -l verbose -d 'Say what happens'
complete -c semlock -n __semlock_at_options -s h -l help -d 'Print a summary'
complete -c semlock -n __semlock_at_options -s V -l version -d 'Print the version'
