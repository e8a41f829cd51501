# SPDX-License-Identifier: MIT
# fish completion for semlock; in share/fish/vendor_completions.d.

# The options of semlock --help, one a line: name, argument and help, with tabulators between them.  Names that
# share a line share the last one's argument.
function __semlock_table
    command -sq semlock; or return
    semlock --help 2>/dev/null | awk '/^  +-/ {
        sub(/^ +/, "")
        help = match($0, /  +/) ? substr($0, RSTART + RLENGTH) : ""
        sub(/  .*/, "")
        count = split($0, name, ", ")
        argument = match($0, /[[]?=[^,]*$/) ? substr($0, RSTART) : ""
        for (i = 1; i <= count; i++) {
            own = match(name[i], /[[]?=.*/) ? substr(name[i], RSTART) : argument
            sub(/[[ =].*/, "", name[i])
            print name[i] "\t" own "\t" help
        }
    }'
end

# The long options that take a value, and the letters.
set -g __semlock_with_value
set -g __semlock_letters ''

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
            case $__semlock_with_value
                set -q words[2]; or return 1
                set -e words[1]
            case '--*'
            case -
                break
            case '-*'
                # -nw 10: the first letter that takes a value ends the cluster.
                if string match -qr "^-[^$__semlock_letters]*[$__semlock_letters]\$" -- $words[1]
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
    __semlock_said '--who'; or __semlock_said --held; or __semlock_said '--hold*'; or __semlock_said '--release*'; or __semlock_said '--resume*'
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

# The IDs of the holds in the background, and of the places in queues.
function __semlock_ids
    command -sq semlock; or return
    semlock --who --json 2>/dev/null | sed -n 's/.*"id": "\([0-9a-f-]*\)".*/\1/p'
end

# The words of semlock --help behind METHOD: or SIG:
function __semlock_known
    command -sq semlock; or return
    semlock --help 2>/dev/null | sed -n "s/; made of files://; s/^$argv[1]: //p" | string split ' '
end

# Before fish 3.2, no -F brings back the files that -f has taken away.
string match -qr '^(2|3\.[01])\.' -- $version; or complete -c semlock -f
complete -c semlock -n __semlock_at_lock -F -a '(__semlock_urls)'
complete -c semlock -n __semlock_at_command -f -a '(__semlock_command)'
complete -c semlock -n '__semlock_at_command; and not __semlock_without_lock; and test (count (__semlock_operands)) -eq 1' -f -a '-c --command' -d 'Run a string by the shell'

for line in (__semlock_table)
    set -l row (string split \t -- $line)
    set -l name (string replace -r '^--?' '' -- $row[1])
    set -l kind -s
    set -l value
    string match -q -- '--*' $row[1]; and set kind -l
    switch $row[2]
        case '=*'
            test $kind = -l; and set -a __semlock_with_value $row[1]
            test $kind = -s; and set __semlock_letters $__semlock_letters$name
            set value -x
    end
    switch (string replace -ra '[^A-Z]' '' -- $row[2])
        case FD
            set -a value -a '0 1 2 3 4 5 6 7 8 9'
        case FILE
            set value -r -F
        case ID
            set -a value -a '(__semlock_ids)'
        case LOCK
            set value -r -a '(__semlock_urls)'
        case METHOD
            set -a value -a '(__semlock_known METHOD)'
        case NAME
            set -a value -a '(__semlock_names)'
        case SIG
            set -a value -f -a '(__semlock_known SIG)'
        case WHAT
            set -a value -a 'warn term kill'
    end
    complete -c semlock -n __semlock_at_options $kind $name $value -d $row[3]
end
