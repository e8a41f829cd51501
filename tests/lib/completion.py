# SPDX-License-Identifier: MIT
"""completion.py SHELL LINE...: prints the completions of the last word of each LINE, one a line,
and the line "==" after those of each LINE.  The environment variable FILE names the completion script.

bash and zsh run at a terminal: LINE is typed, and the key pressed that inserts all completions.
fish prints them without a terminal.  zsh keeps what it finds in its directories in the file $ZSH_DUMP.

completion.py --seen SHELL LINE...: at a terminal, each LINE and twice the tabulator are typed; prints the words that a
person sees then, one a line, and "==" after those of each LINE."""
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time

# A line is done when the words of it are printed between these two; typed, they are in two parts.
BEGIN, END = "<<<", ">>>"
SHOW = 'show() { printf "%s\\n" "<""<<" "$@" ">"">>"; }\n'
SETUP = {
    "bash": SHOW + 'PS1=; bind "set completion-query-items 0"; bind "set bell-style none"\n'
            'bind "\\C-t: insert-completions"; source /usr/share/bash-completion/bash_completion\n'
            'source "$FILE"\n',
    "zsh": SHOW + 'PS1=; unsetopt prompt_sp zle_bracketed_paste; zle_bracketed_paste=(); bindkey -e\n'
           'fpath=("${FILE%/*}" $fpath); autoload -U compinit; compinit -u -d "$ZSH_DUMP"; zstyle ":completion:*" insert-tab no\n'
           'setopt no_beep; zstyle ":completion:all-matches:*" completer _all_matches _complete\n'
           'zstyle ":completion:all-matches:*" insert yes; zle -C all-matches complete-word _generic\n'
           'bindkey "^t" all-matches\n',
}
# Without this fish runs apropos(1) for the commands that it completes, which takes seconds.
UNDESCRIBED = "function __fish_describe_command; end; "
SETUP["fish"] = (UNDESCRIBED + 'function show; printf "%s\\n" "<""<<" $argv ">"">>"; end; function fish_prompt; end; '
                 'source "$FILE"\n')
COMMAND = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"],
           "fish": ["fish", "--no-config", "-i"]}


class Terminal:
    def __init__(self, shell):
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ.update(TERM="dumb" if shell == "bash" else "vt100", COLUMNS="1000", HISTFILE="")
            os.execvp(shell, COMMAND[shell])
        self.text = ""

    def type(self, keys):
        keys = keys.encode()
        while keys:     # a terminal's input has little room: go on as it is read
            keys = keys[os.write(self.fd, keys[:256]):]

    def await_prompt(self):
        """Until the shell reads single keys: before, the terminal itself would take ^U, and erase the line."""
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            time.sleep(.005)

    def until(self, pattern):
        """What was printed up to a match of PATTERN."""
        end = time.monotonic() + 60
        while not (found := re.search(pattern, self.text, re.DOTALL)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                sys.exit(f"nothing like {pattern} in {self.text!r}")
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
            except OSError:
                sys.exit(f"the shell has ended: {self.text!r}")
        self.text = self.text[found.end():]
        return found


def main(shell, *lines):
    terminal = Terminal(shell)
    terminal.type(SETUP[shell] + "show ready\n")
    terminal.until(f"{BEGIN}\nready\n{END}\n")
    for line in lines:
        terminal.await_prompt()
        terminal.type(line + "\x14\x01show \x05\n")
        words = terminal.until(f"\n{BEGIN}\n(.*?){END}\n").group(1).splitlines()
        print(*words[len((line + "x").split()) - 1:], "==", sep="\n")
    terminal.type("exit\n")


def fish(*lines):
    """With ? as a wildcard, as in fish 3, and without, as in fish 4: both complete the same."""
    script = UNDESCRIBED + "source $FILE; for line in (cat); complete -C$line; echo ==; end"    # fish 3.1 hands -c no arguments on
    said = [subprocess.run(["fish", f"--features={feature}", "-c", script], check=True, stdout=subprocess.PIPE,
                           input="\n".join(lines), text=True).stdout for feature in ("", "qmark-noglob")]
    for one, other in zip(*(words.split("==\n") for words in said)):
        if one != other:
            sys.exit(f"fish 3 completes {one[:60]!r}, fish 4 {other[:60]!r}")
    print(re.sub(r"\t.*", "", said[0]), end="")


def seen(shell, *lines):
    terminal = Terminal(shell)
    terminal.type(SETUP[shell] + "show ready\n")
    terminal.until(f"{BEGIN}\nready\n{END}\n")
    for line in lines:
        terminal.await_prompt()
        terminal.type(line + "\t\t\x15show done\n")
        text = terminal.until(f"(.*){BEGIN}\ndone\n{END}\n").group(1)
        words = re.sub(r"\x1b[\[(]?[0-9;?]*[A-Za-z]|\x00|\x07|\\(?= )", " ", text).replace("…-replace=", "").split()
        print(*words, "==", sep="\n")


if sys.argv[1] == "--seen":
    seen(*sys.argv[2:])
elif sys.argv[1] == "fish":
    fish(*sys.argv[2:])
else:
    main(*sys.argv[1:])
