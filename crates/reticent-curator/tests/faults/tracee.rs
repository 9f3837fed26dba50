//! A process that stops at each of its system calls, and what it asks the system for.
//!
//! The program under test is the product as it ships: it has no hook and does not know. Every call that it makes can be
//! looked at before it is carried out, refused, cut short, or be its last.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A system call that has to do with files, locks or time.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Open {
        path: PathBuf,
        create: bool,
        truncate: bool,
    },
    Close {
        descriptor: i32,
    },
    Duplicate {
        descriptor: i32,
    },
    Read {
        descriptor: i32,
        length: usize,
    },
    Write {
        descriptor: i32,
        from: u64,
        length: usize,
        offset: Option<usize>,
    },
    Resize {
        descriptor: i32,
        length: usize,
    },
    Sync {
        descriptor: i32,
    },
    Remove {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Lock {
        descriptor: i32,
    },
    Look {
        at: Looked,
    },
    Sleep,
    /// Asks for the time of day: where it is put, and in what units its second number is.
    Time {
        into: u64,
        per_second: i64,
    },
}

/// What the system was asked about.
#[derive(Clone, Debug)]
pub(crate) enum Looked {
    Path(PathBuf),
    Descriptor(i32),
}

/// What is to become of a call that is about to be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    Proceed,
    /// It is not carried out and answers this: an error number with a minus sign, or a success.
    Answer(i64),
    /// It is carried out for so many bytes.
    Shorten(usize),
    /// It is not carried out, and the process is no more.
    Kill,
}

/// What is to become of a call that has been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Proceed,
    /// It answers this instead.
    Answer(i64),
    /// The process never learns of it.
    Kill,
}

/// Decides on calls.
pub(crate) trait Warden {
    fn before(&mut self, call: &Call, tracee: &Tracee) -> Before;
    fn after(&mut self, call: &Call, result: i64, tracee: &Tracee) -> After;
}

/// The process.
pub(crate) struct Tracee {
    child: Child,
    /// The thread that is followed: that of the test, which is not the first.
    thread: Pid,
    memory: fs::File,
}

impl Tracee {
    /// Starts a program, which sends itself [`START`] when the calls that matter begin. With `own_clock` it asks the system
    /// for the time, instead of reading it from memory that the kernel shares.
    #[allow(clippy::zombie_processes, reason = "who traces it waits for it by its number")]
    pub(crate) fn start(program: &Path, arguments: &[&str], variables: &[(&str, OsString)], own_clock: bool) -> Self {
        // The shell waits until it is traced, and becomes the program.
        let mut command = Command::new("sh");
        command.args(["-c", "read line; exec \"$0\" \"$@\""]).arg(program).args(arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("there is a shell");
        let process = process(&child);
        let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
            | ptrace::Options::PTRACE_O_EXITKILL
            | ptrace::Options::PTRACE_O_TRACEEXEC
            | ptrace::Options::PTRACE_O_TRACECLONE;
        ptrace::seize(process, options).expect("a process may trace its children here");
        child.stdin.take().expect("piped").write_all(b"\n").expect("it listens");
        loop {
            let status = wait_for_any();
            let stopped = status.pid().expect("it is about a thread");
            if let WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) = status {
                if own_clock {
                    hide_shared_clock(stopped);
                }
            } else if let WaitStatus::Stopped(thread, START) = status {
                return Self { child, thread, memory: memory(thread) };
            } else if let WaitStatus::Exited(..) | WaitStatus::Signaled(..) = status {
                panic!("the program ended before it began: {status:?}");
            }
            ptrace::cont(stopped, None).expect("it is stopped");
        }
    }

    /// Lets it run to its end, with a warden who sees every call. Returns what it said. When the test fails meanwhile, the
    /// kernel ends the program.
    pub(crate) fn run(mut self, warden: &mut impl Warden) -> String {
        self.follow(warden);
        let mut said = String::new();
        let mut output: ChildStdout = self.child.stdout.take().expect("piped");
        output.read_to_string(&mut said).expect("it speaks UTF-8");
        said
    }

    /// Bytes of its memory.
    pub(crate) fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read_exact_at(&mut bytes, address).expect("its own memory");
        bytes
    }

    /// Replaces eight bytes of its memory.
    pub(crate) fn put(&self, address: u64, word: i64) {
        self.memory.write_all_at(&word.to_ne_bytes(), address).expect("its own memory");
    }

    /// Where in a file the next read or write would be.
    pub(crate) fn position(&self, descriptor: i32) -> usize {
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.thread)).expect("it is open");
        let line = text.lines().find_map(|line| line.strip_prefix("pos:")).expect("a file has a position");
        line.trim().parse().expect("a number")
    }

    fn follow(&mut self, warden: &mut impl Warden) {
        while self.next_stop() {
            let mut registers = self.registers();
            let call = self.decode(&registers);
            let mut answer = None;
            if let Some(call) = &call {
                match warden.before(call, self) {
                    Before::Proceed => {}
                    Before::Shorten(length) => {
                        registers.rdx = length as u64;
                        self.set(registers);
                    }
                    Before::Answer(instead) => {
                        answer = Some(instead);
                        self.skip(registers);
                    }
                    Before::Kill => {
                        self.skip(registers);
                        return self.kill();
                    }
                }
            }
            if !self.next_stop() {
                break;
            }
            let Some(call) = &call else { continue };
            let mut registers = self.registers();
            if answer.is_none() {
                match warden.after(call, registers.rax.cast_signed(), self) {
                    After::Proceed => continue,
                    After::Answer(instead) => answer = Some(instead),
                    After::Kill => return self.kill(),
                }
            }
            registers.rax = answer.expect("set above").cast_unsigned();
            self.set(registers);
        }
        self.wait_for_the_process();
    }

    /// Until the thread enters or leaves a system call; false when it has ended.
    fn next_stop(&self) -> bool {
        let mut signal = None;
        loop {
            ptrace::syscall(self.thread, signal.take()).expect("it is stopped");
            let status = waitpid(self.thread, Some(WaitPidFlag::__WALL)).expect("our child");
            if let WaitStatus::PtraceSyscall(_) = status {
                return true;
            } else if let WaitStatus::Exited(..) = status {
                return false;
            } else if let WaitStatus::Stopped(_, sent) = status {
                signal = Some(sent);
            } else if let WaitStatus::Signaled(_, by, _) = status {
                panic!("the program died of {by}");
            }
        }
    }

    fn wait_for_the_process(&self) {
        loop {
            let status = wait_for_any();
            if let WaitStatus::Exited(pid, code) = status {
                if pid == process(&self.child) {
                    return assert_eq!(code, 0, "the program failed");
                }
            } else if let WaitStatus::Signaled(_, by, _) = status {
                panic!("the program died of {by}");
            } else {
                ptrace::cont(status.pid().expect("it is about a thread"), None).expect("it is stopped");
            }
        }
    }

    fn registers(&self) -> libc::user_regs_struct {
        ptrace::getregs(self.thread).expect("it is stopped")
    }

    fn set(&self, registers: libc::user_regs_struct) {
        ptrace::setregs(self.thread, registers).expect("it is stopped");
    }

    fn skip(&self, mut registers: libc::user_regs_struct) {
        registers.orig_rax = u64::MAX;
        self.set(registers);
    }

    fn kill(&self) {
        let process = process(&self.child);
        nix::sys::signal::kill(process, Signal::SIGKILL).expect("our child");
        while !matches!(wait_for_any(), WaitStatus::Signaled(pid, ..) if pid == process) {}
    }

    fn decode(&self, registers: &libc::user_regs_struct) -> Option<Call> {
        let [first, second, third, fourth] = [registers.rdi, registers.rsi, registers.rdx, registers.r10];
        // An `int` is the lower half of its register.
        let descriptor = first as i32;
        let create = |flags: u64| flags & u64::from(libc::O_CREAT.cast_unsigned()) != 0;
        let truncate = |flags: u64| flags & u64::from(libc::O_TRUNC.cast_unsigned()) != 0;
        let call = match registers.orig_rax.cast_signed() {
            libc::SYS_open => Call::Open { path: self.path(first), create: create(second), truncate: truncate(second) },
            libc::SYS_openat => {
                Call::Open { path: self.path(second), create: create(third), truncate: truncate(third) }
            }
            libc::SYS_close => Call::Close { descriptor },
            libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => Call::Duplicate { descriptor },
            libc::SYS_read | libc::SYS_pread64 => Call::Read { descriptor, length: third as usize },
            libc::SYS_write => Call::Write { descriptor, from: second, length: third as usize, offset: None },
            libc::SYS_pwrite64 => {
                Call::Write { descriptor, from: second, length: third as usize, offset: Some(fourth as usize) }
            }
            libc::SYS_ftruncate => Call::Resize { descriptor, length: second as usize },
            libc::SYS_fsync | libc::SYS_fdatasync => Call::Sync { descriptor },
            libc::SYS_unlink => Call::Remove { path: self.path(first) },
            libc::SYS_unlinkat => Call::Remove { path: self.path(second) },
            libc::SYS_rename => Call::Rename { from: self.path(first), to: self.path(second) },
            libc::SYS_renameat | libc::SYS_renameat2 => Call::Rename { from: self.path(second), to: self.path(fourth) },
            libc::SYS_link => Call::Link { from: self.path(first), to: self.path(second) },
            libc::SYS_linkat => Call::Link { from: self.path(second), to: self.path(fourth) },
            libc::SYS_fcntl => match second as i32 {
                libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK => Call::Lock { descriptor },
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => Call::Duplicate { descriptor },
                _ => return None,
            },
            libc::SYS_stat | libc::SYS_lstat | libc::SYS_access => Call::Look { at: Looked::Path(self.path(first)) },
            libc::SYS_newfstatat | libc::SYS_statx | libc::SYS_faccessat | libc::SYS_faccessat2 => {
                let path = self.path(second);
                let at = if path.as_os_str().is_empty() { Looked::Descriptor(descriptor) } else { Looked::Path(path) };
                Call::Look { at }
            }
            libc::SYS_fstat => Call::Look { at: Looked::Descriptor(descriptor) },
            libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Call::Sleep,
            libc::SYS_clock_gettime if descriptor == libc::CLOCK_REALTIME => {
                Call::Time { into: second, per_second: 1_000_000_000 }
            }
            libc::SYS_gettimeofday => Call::Time { into: first, per_second: 1_000_000 },
            _ => return None,
        };
        Some(call)
    }

    /// A name, which ends with a zero byte.
    fn path(&self, mut address: u64) -> PathBuf {
        let mut bytes = Vec::new();
        // Not past the end of a page, where its memory may end.
        while address != 0 && !bytes.contains(&0) {
            let length = 256 - (address % 256) as usize;
            bytes.extend(self.read(address, length));
            address += length as u64;
        }
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
        PathBuf::from(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// On the stack of a program that has not begun: how many arguments, these, the environment, and pairs of a key and a value,
/// one of which says where the kernel's shared code for reading clocks is.
fn hide_shared_clock(process: Pid) {
    let memory = memory(process);
    let word = |address: u64| {
        let mut bytes = [0; 8];
        memory.read_exact_at(&mut bytes, address).expect("its own stack");
        u64::from_ne_bytes(bytes)
    };
    let mut address = ptrace::getregs(process).expect("it is stopped").rsp;
    address += 8 * (word(address) + 2);
    while word(address) != 0 {
        address += 8;
    }
    address += 8;
    while word(address) != AT_NULL {
        if word(address) == AT_SYSINFO_EHDR {
            memory.write_all_at(&AT_IGNORE.to_ne_bytes(), address).expect("its own stack");
        }
        address += 16;
    }
}

fn memory(thread: Pid) -> fs::File {
    fs::File::options().read(true).write(true).open(format!("/proc/{thread}/mem")).expect("a tracer may")
}

fn process(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("process numbers are small"))
}

/// The next stop or end of any thread that this thread traces.
fn wait_for_any() -> WaitStatus {
    waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)).expect("our children")
}

/// What the program sends itself when the calls that matter begin.
pub(crate) const START: Signal = Signal::SIGUSR1;

/// Keys of the pairs: the end, a pair without meaning, and where the kernel's shared code is (`linux/auxvec.h`).
const AT_NULL: u64 = 0;
const AT_IGNORE: u64 = 1;
const AT_SYSINFO_EHDR: u64 = 33;
