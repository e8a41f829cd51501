# SPDX-License-Identifier: MIT
# lease.py FILE: takes a lease on FILE (F_SETLEASE), as Samba does, makes FILE.leased, and gives the lease up a while after
# it is asked to.
import fcntl, os, signal, sys

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO, signal.SIGUSR1])
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open(sys.argv[1] + ".leased", "w").close()
signal.sigwait([signal.SIGIO])
open(sys.argv[1] + ".asked", "w").close()
signal.sigtimedwait([signal.SIGUSR1], float(sys.argv[2]))
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
signal.pause()
