# SPDX-License-Identifier: MIT
"""Every interleaving of a protocol, breadth first.

A model is a function from a state (anything hashable) to a list of (name of the step, next state),
and one from a state to the fault in it, or None. Between two steps of a process any other process may act.
"""
import collections
import gc
import sys


def explore(start, steps, wrong):
    """Returns (number of states, None or (what is wrong, the shortest way there))."""
    came_from = {start: None}
    queue = collections.deque([start])
    while queue:
        state = queue.popleft()
        following = steps(state)
        fault = wrong(state, following)
        if fault:
            way = []
            while came_from[state]:
                state, name = came_from[state]
                way.append(name)
            return len(came_from), (fault, way[::-1])
        for name, after in following:
            if after not in came_from:
                came_from[after] = (state, name)
                queue.append(after)
    return len(came_from), None


def run(cases):
    """cases: (name, should hold, start, steps, wrong). Prints a line for each; returns the exit status."""
    unexpected = 0
    for name, holds, start, steps, wrong in cases:
        states, found = explore(start, steps, wrong)
        unexpected += (found is None) != holds
        print("%-58s %7d states  %s" % (name, states,
              "holds" if found is None else "VIOLATION: %s: %s" % (found[0], ", ".join(found[1]))), flush=True)
    return 1 if unexpected else 0


def main(cases):
    """All the cases, or those whose name has the program's first argument in it, and none of the others."""
    word, *without = sys.argv[1:] or [""]
    gc.disable()  # states have no cycles, and there are millions of them
    sys.exit(run([case for case in cases if word in case[0] and not any(other in case[0] for other in without)]))
