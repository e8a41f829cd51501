# SPDX-License-Identifier: MIT
"""python3 -m unittest, with SEMLOCK=the program, or semlock in the PATH."""

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import semlock

SEMLOCK = os.environ.get("SEMLOCK") or "semlock"
URL = os.environ.get("SEMLOCK_TEST_URL")


class Enough(Exception):
    pass


class Case(unittest.TestCase):
    def setUp(self):
        signal.alarm(120)   # no test may hang for ever
        self.addCleanup(signal.alarm, 0)
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.lock = os.path.join(self.dir, "lock")

    def free(self, *arguments):
        """Is it free for a program like any other?"""
        status = subprocess.run([SEMLOCK, "-n", *(arguments or [self.lock]), "true"]).returncode
        self.assertIn(status, (0, 1))
        return status == 0

    def waiting(self):
        table = subprocess.run([SEMLOCK, "--who", self.lock], stdout=subprocess.PIPE, text=True).stdout
        return sum(1 for line in table.splitlines() if line.split()[0].rstrip(".").isdigit()
                   and line.split()[0].endswith("."))

    def until(self, condition):
        while not condition():
            time.sleep(0.01)

    def child(self, code):
        """Run CODE(write) in a fork; returns its pid and a file with what it writes."""
        down, up = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(down)
                code(lambda text: os.write(up, (text + "\n").encode()))
            except BaseException as error:
                os.write(up, (repr(error) + "\n").encode())
            finally:
                os._exit(0)
        os.close(up)
        said = os.fdopen(down)
        self.addCleanup(said.close)
        return pid, said


class Holding(Case):
    def test_with_holds_and_frees(self):
        with semlock.Sem(self.lock) as lock:
            self.assertTrue(lock.held)
            self.assertFalse(self.free())
        self.assertTrue(self.free())
        self.assertFalse(lock.held)
        self.assertFalse(lock.release())

    def test_acquire_and_release_again_and_again(self):
        lock = semlock.Sem(self.lock)
        self.assertFalse(lock.held)
        for _ in range(3):
            self.assertIs(lock.acquire(), lock)
            self.assertFalse(self.free())
            self.assertRaisesRegex(semlock.Error, "already", lock.acquire)
            self.assertTrue(lock.release())
            self.assertTrue(self.free())

    def test_two_threads_with_one_object(self):
        lock, outcomes = semlock.Sem(self.lock), []
        entered, second = threading.Event(), threading.Event()
        pair = semlock.socket.socketpair

        def slowly():       # the first waits here until the second has been refused, or gets here as well
            entered.set()
            if threading.current_thread() is first:
                second.wait(60)
            second.set()
            return pair()

        def acquire():
            try:
                lock.acquire()
                outcomes.append("held")
            except semlock.Error:
                outcomes.append("refused")

        semlock.socket.socketpair = slowly
        self.addCleanup(setattr, semlock.socket, "socketpair", pair)
        first = threading.Thread(target=acquire, daemon=True)
        first.start()
        entered.wait(60)
        acquire()
        second.set()
        first.join(60)
        self.assertEqual(outcomes, ["refused", "held"])
        self.assertTrue(lock.release())
        self.assertTrue(self.free())

    def test_an_exception_passes_and_frees(self):
        with self.assertRaises(Enough):
            with semlock.Sem(self.lock):
                raise Enough
        self.assertTrue(self.free())

    def test_an_object_that_is_forgotten_frees(self):
        lock = semlock.Sem(self.lock).acquire()
        gone = weakref.ref(lock)
        del lock
        gc.collect()
        self.assertIsNone(gone())
        self.assertTrue(self.free())

    def test_busy(self):
        with semlock.Sem(self.lock):
            with self.assertRaisesRegex(semlock.Busy, "held by"):
                semlock.Sem(self.lock, nonblock=True).acquire()
            with self.assertRaises(semlock.Busy):
                semlock.Sem(self.lock, wait="10ms").acquire()
            with self.assertRaises(semlock.Busy):
                semlock.Sem(self.lock, wait=0.01).acquire()

    def test_trouble_in_its_own_words(self):
        with self.assertRaisesRegex(semlock.Error, "cannot create: its directory does not exist") as caught:
            semlock.Sem(os.path.join(self.dir, "none", "lock")).acquire()
        self.assertNotIsInstance(caught.exception, semlock.Busy)
        with self.assertRaisesRegex(semlock.Error, "cannot run .*: No such file"):
            semlock.Sem(self.lock, program=self.dir + "/none").acquire()
        with self.assertRaisesRegex(semlock.Error, "nothing"):
            semlock.Sem(self.lock, method="nothing").acquire()
        with self.assertRaisesRegex(TypeError, "wiat"):
            semlock.Sem(self.lock, wiat=1)
        self.assertFalse(os.path.exists(self.lock))

    def test_a_name_is_never_an_option(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)
        with semlock.Sem("-n"):
            self.assertFalse(self.free("--", "-n"))

    def test_shared_slots_several(self):
        with semlock.Sem(self.lock, shared=True), semlock.Sem(self.lock, shared=True):
            with self.assertRaises(semlock.Busy):
                semlock.Sem(self.lock, nonblock=True).acquire()
        with semlock.Sem(self.lock, slots=2) as one, semlock.Sem(self.lock, slots=2) as two:
            self.assertEqual((one.slot, two.slot, one.token), (0, 1, None))
            with self.assertRaises(semlock.Busy):
                semlock.Sem(self.lock, slots=2, nonblock=True).acquire()
        other = os.path.join(self.dir, "other")
        with semlock.Sem(self.lock, also=[other]):
            self.assertFalse(self.free() or self.free(other))
        self.assertTrue(self.free() and self.free(other))

    def test_methods(self):
        for method in ("ofd", "posix", "excl", "link", "mkdir", "symlink"):
            name = os.path.join(self.dir, method)
            with semlock.Sem(name, method=method):
                self.assertFalse(self.free("-m", method, name), method)
            self.assertTrue(self.free("-m", method, name), method)

    def test_a_counter(self):
        counter = os.path.join(self.dir, "counter")

        def count():
            for _ in range(25):
                with semlock.Sem(self.lock):
                    number = 0
                    if os.path.exists(counter):
                        with open(counter) as before:
                            number = int(before.read())
                    with open(counter, "w") as after:
                        after.write(str(number + 1))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with open(counter) as result:
            self.assertEqual(result.read(), "100")


class Processes(Case):
    def test_a_forked_child_holds_nothing_and_frees_nothing(self):
        with semlock.Sem(self.lock) as lock:
            pid, said = self.child(lambda write: write(f"{lock.held} {lock.release()}"))
            self.assertEqual(said.readline(), "False False\n")
            os.waitpid(pid, 0)
            self.assertTrue(lock.held)
            self.assertFalse(self.free())

            def lock_too(write):
                try:
                    semlock.Sem(self.lock, nonblock=True).acquire()
                except semlock.Busy:
                    write("busy")

            pid, said = self.child(lock_too)
            self.assertEqual(said.readline(), "busy\n")
            os.waitpid(pid, 0)

    def test_a_fork_that_python_does_not_see(self):
        stay, go = os.pipe()
        pid, said = self.child(lambda write: (self.own_a_lock(write), os.close(go),
                                              self.fork_unseen(stay, write), time.sleep(100)))
        self.assertEqual(said.readline(), "held\n")
        grandchild = int(said.readline())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertEqual(subprocess.run([SEMLOCK, "-w", "60", self.lock, "true"]).returncode, 0)
        os.kill(grandchild, 0)
        os.close(go)
        os.close(stay)

    def own_a_lock(self, write):
        self.own = semlock.Sem(self.lock).acquire()
        write("held")

    def fork_unseen(self, stay, write):
        sys.stdout.flush()
        semlock._living.clear()     # like a fork in C, of which Python is not told
        pid = os.fork()
        if pid == 0:
            os.read(stay, 1)
            os._exit(0)
        write(str(pid))

    def test_programs_do_not_inherit_it(self):
        with semlock.Sem(self.lock) as lock:
            self.assertTrue(fcntl.fcntl(lock._socket, fcntl.F_GETFD) & fcntl.FD_CLOEXEC)
            program = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
            lock.release()
            self.assertTrue(self.free())
            program.communicate()

    def test_exec_lets_go(self):
        pid, _ = self.child(lambda write: (self.own_a_lock(write), os.execlp(
            SEMLOCK, "semlock", "-w", "60", self.lock, "true")))
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_a_killed_owner_frees(self):
        pid, said = self.child(lambda write: (self.own_a_lock(write), time.sleep(100)))
        self.assertEqual(said.readline(), "held\n")
        self.assertFalse(self.free())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.assertEqual(subprocess.run([SEMLOCK, "-w", "60", self.lock, "true"]).returncode, 0)

    def test_the_end_of_the_program(self):
        program = "import semlock, sys; lock = semlock.Sem(sys.argv[1]).acquire(); sys.exit(3)"
        self.assertEqual(subprocess.run([sys.executable, "-c", program, self.lock]).returncode, 3)
        self.assertTrue(self.free())

    def test_closed_standard_descriptors_do_no_harm(self):
        program = ("import os, semlock, sys; os.close(0); os.close(1)\n"
                   "with semlock.Sem(sys.argv[1]) as lock: held = lock.held\n"
                   "os._exit(4 if held else 5)")
        self.assertEqual(subprocess.run([sys.executable, "-c", program, self.lock]).returncode, 4)

    def test_whoever_reaps_or_ignores_children(self):
        def reap(signo, frame):
            try:
                while os.waitpid(-1, os.WNOHANG)[0] > 0:
                    pass
            except ChildProcessError:
                pass

        for way in (signal.SIG_IGN, reap):
            before = signal.signal(signal.SIGCHLD, way)
            try:
                with semlock.Sem(self.lock):
                    with self.assertRaises(semlock.Busy):
                        semlock.Sem(self.lock, nonblock=True).acquire()
                with semlock.Sem(self.lock, nonblock=True) as lock:
                    self.assertTrue(lock.held)
            finally:
                signal.signal(signal.SIGCHLD, before)


class Signals(Case):
    def wait_for_it(self, handler):
        def code(write):
            def handle(signo, frame):
                write("signal")
                handler()
            signal.signal(signal.SIGUSR1, handle)
            try:
                with semlock.Sem(self.lock):
                    write("taken")
            except Enough:
                write("enough")
        pid, said = self.child(code)
        self.until(lambda: self.waiting() == 1)
        os.kill(pid, signal.SIGUSR1)
        self.assertEqual(said.readline(), "signal\n")
        return pid, said

    def test_a_handler_runs_while_it_waits(self):
        with semlock.Sem(self.lock):
            pid, said = self.wait_for_it(lambda: None)
            self.assertEqual(self.waiting(), 1)
        self.assertEqual(said.readline(), "taken\n")
        os.waitpid(pid, 0)

    def test_an_exception_of_the_handler_leaves_no_place_behind(self):
        def fail():
            raise Enough

        with semlock.Sem(self.lock):
            pid, said = self.wait_for_it(fail)
            self.assertEqual(said.readline(), "enough\n")
            self.assertEqual(self.waiting(), 0)
            os.waitpid(pid, 0)

    def test_a_killed_waiter_leaves_no_place_behind(self):
        with semlock.Sem(self.lock) as lock:
            pid, _ = self.wait_for_it(lambda: None)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.until(lambda: self.waiting() == 0)
            self.assertTrue(lock.held)

    def test_a_signal_to_the_whole_group_is_for_the_program(self):
        def code(write):
            os.setpgid(0, 0)
            lock = semlock.Sem(self.lock).acquire()
            try:
                write("ready")
                time.sleep(100)
            except KeyboardInterrupt:
                write(f"{lock.release()}")    # Lost, if the signal had reached the holder

        signal.signal(signal.SIGINT, signal.default_int_handler)
        pid, said = self.child(code)
        self.assertEqual(said.readline(), "ready\n")
        os.kill(-pid, signal.SIGINT)
        self.assertEqual(said.readline(), "True\n")
        os.waitpid(pid, 0)


class Losing(Case):
    def test_a_killed_semlock(self):
        lock = semlock.Sem(self.lock).acquire()
        os.kill(lock._process.pid, signal.SIGKILL)
        lock._process.wait()
        self.assertFalse(self.free())
        self.assertRaises(semlock.Lost, lock.release)
        self.assertTrue(self.free())

    def test_a_lost_lock_that_is_forgotten_is_reported(self):
        lock = semlock.Sem(self.lock).acquire()
        os.kill(lock._process.pid, signal.SIGKILL)
        lock._process.wait()
        with self.assertWarnsRegex(RuntimeWarning, "lock: the lock was lost"):
            del lock
            gc.collect()

    def test_a_lock_of_files_that_is_removed(self):
        for method, remove in (("mkdir", shutil.rmtree), ("excl", os.unlink)):
            name = os.path.join(self.dir, method)
            with self.assertRaisesRegex(semlock.Lost, f"the lock was lost: semlock: .*{method}: "):
                with semlock.Sem(name, method=method) as lock:
                    remove(name)
                    self.until(lambda: not lock.held)


class Detached(Case):
    def detach(self, **options):
        return semlock.detach(self.lock, **options)

    def test_a_later_program_releases_it(self):
        hold = self.detach(pid=os.getpid(), note="release 1.4")
        self.assertFalse(self.free())
        self.assertIsNone(hold.slot)
        self.assertIsNone(hold.token)
        table = subprocess.run([SEMLOCK, "--who", self.lock], stdout=subprocess.PIPE, text=True).stdout
        self.assertIn("release 1.4", table)
        self.assertIn(hold.id, table)
        code = "import semlock, sys; semlock.release(*sys.argv[1:])"
        subprocess.run([sys.executable, "-c", code, self.lock, str(hold)], check=True)
        self.assertTrue(self.free())
        with self.assertRaises(semlock.Lost):
            semlock.release(self.lock, hold.id)

    def test_busy_and_a_slot(self):
        with semlock.Sem(self.lock):
            with self.assertRaises(semlock.Busy):
                self.detach(pid=os.getpid(), nonblock=True)
        holds = [self.detach(pid=os.getpid(), slots=2) for _ in range(2)]
        self.assertEqual(sorted(hold.slot for hold in holds), [0, 1])
        for hold in holds:
            semlock.release(self.lock, hold.id)

    def test_it_ends_with_its_process(self):
        process = subprocess.Popen(["sleep", "1000"])
        self.detach(pid=process.pid)
        self.assertFalse(self.free())
        process.kill()
        process.wait()
        self.until(self.free)

    def test_when_it_ends_has_to_be_said(self):
        with self.assertRaisesRegex(semlock.Error, "run-timeout"):
            self.detach()
        self.detach(run_timeout=.3, method="mkdir")
        self.until(lambda: self.free("-m", "mkdir", self.lock))

    def test_what_is_no_id(self):
        with self.assertRaises(semlock.Error) as caught:
            semlock.release(self.lock, "4711")
        self.assertNotIsInstance(caught.exception, (semlock.Busy, semlock.Lost))


class NetLock(Case):
    def test_a_file_is_not_a_url(self):
        self.assertRaises(ValueError, semlock.NetLock, "/run/lock/x")

    @unittest.skipUnless(URL, "no server: set SEMLOCK_TEST_URL")
    def test_on_a_server(self):
        with semlock.NetLock(URL, ttl=20) as lock:
            self.assertTrue(lock.held)
            self.assertFalse(self.free(URL))
            with self.assertRaises(semlock.Busy):
                semlock.NetLock(URL, nonblock=True).acquire()
        self.assertTrue(self.free(URL))


if __name__ == "__main__":
    unittest.main()
