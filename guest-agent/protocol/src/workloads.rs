//! The list of workloads. Definitions come from the sources named; no code of theirs was used.

use crate::{
    Better, Duet, ExactMetric, MetricInfo, Parallelism, ParamInfo, ParamKind, WorkloadInfo,
};

/// The name of the workload that runs the user's own benchmark.
pub const COMMAND: &str = "command";

/// The name of the workload that builds a kernel tree.
pub const KERNBENCH: &str = "kernbench";

/// Finds a workload by its name.
pub fn workload(name: &str) -> Option<&'static WorkloadInfo> {
    WORKLOADS.iter().find(|info| info.name == name)
}

const TIME: MetricInfo =
    MetricInfo { name: "time", unit: "ns", better: Better::Lower, primary: true };

const TIME_ONLY: &[MetricInfo] = &[TIME];

const fn info(name: &'static str, operation: &'static str, measures: &'static str) -> WorkloadInfo {
    WorkloadInfo {
        name,
        measures,
        operation,
        metrics: TIME_ONLY,
        params: &[],
        exact: ExactMetric::Instructions,
        parallel: Parallelism::Serial,
        duet: Duet::Yes,
        source: "",
        notes: "",
        suites: &["micro"],
        suite_params: &[],
        iterations: 5,
        warmup: 2,
        min_interval_ms: 200,
    }
}

const LAT_PROC_NOTES: &str = "fork(2) and execve(2) themselves, never vfork or clone with CLONE_VM, from a \
     freshly exec'd single-threaded child of the agent; its mappings are part of the definition. The tiny \
     program is the agent itself (static), which leaves by _exit before the language's start-up.";

const FORK_SHELL_NOTES: &str = "as fork-exec, with /bin/sh -c between; whether the shell execs, forks or vforks for the \
     program is the shell's affair, so both sides must have the same one.";

/// Every workload, in the order `kduel workloads` lists them.
pub const WORKLOADS: &[WorkloadInfo] = &[
    WorkloadInfo {
        params: &[ParamInfo {
            name: "mappings",
            kind: ParamKind::Integer { min: 0, max: 60_000 },
            default: "0",
            help: "further mappings of the forking process, one page each, every other one written to",
        }],
        suite_params: &[("mappings", "0,10000")],
        source: "after lat_proc fork of lmbench (lat_proc-like; numbers are not lmbench's)",
        notes: LAT_PROC_NOTES,
        ..info("fork-exit", "fork+exit", "fork a child that calls _exit at once, wait for it")
    },
    WorkloadInfo {
        source: "after lat_proc exec of lmbench (lat_proc-like; numbers are not lmbench's)",
        notes: LAT_PROC_NOTES,
        ..info(
            "fork-exec",
            "fork+execve",
            "fork a child that execs a tiny static program, wait for it",
        )
    },
    WorkloadInfo {
        source: "after lat_proc shell of lmbench (lat_proc-like; numbers are not lmbench's)",
        notes: FORK_SHELL_NOTES,
        suites: &[],
        ..info(
            "fork-shell",
            "fork+sh -c",
            "fork a child that execs sh -c of a tiny program, wait for it",
        )
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "call",
            kind: ParamKind::Choice(&[
                "getppid",
                "read-1",
                "read-4k",
                "write-1",
                "write-4k",
                "open-close",
                "stat",
            ]),
            default: "getppid,read-1,read-4k,write-1,write-4k,open-close,stat",
            help: "which call; read is from /dev/zero, write to /dev/null, open and stat of a file on tmpfs",
        }],
        source: "after lat_syscall of lmbench (lat_syscall-like) and perf bench syscall basic",
        notes: "raw system calls, no C library between; getppid because C libraries may cache getpid",
        ..info("syscall", "system call", "one system call in a loop")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "bytes",
            kind: ParamKind::Bytes { min: 1, max: 65536 },
            default: "4",
            help: "message size",
        }],
        source: "after perf bench sched pipe: two tasks, one word there and back over two pipes",
        notes: "two processes, not pinned; one operation is one round trip, so two wake-ups",
        ..info(
            "pipe-roundtrip",
            "round trip",
            "a message to another process and back over two pipes",
        )
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "tasks",
            kind: ParamKind::Integer { min: 2, max: 256 },
            default: "2",
            help: "processes in the ring",
        }],
        source: "after lat_ctx of lmbench (lat_ctx-like, working set 0) and context1 of UnixBench",
        notes: "a token of one byte goes round a ring of pipes; pipe cost is part of the time; all tasks on one CPU",
        ..info("context-switch", "hand-over", "a token handed to the next of a ring of processes")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "kind",
            kind: ParamKind::Choice(&["anonymous", "huge", "file", "copy-on-write"]),
            default: "anonymous,file,copy-on-write",
            help: "what is written to: fresh anonymous memory in small or huge pages, a shared mapping of a tmpfs \
                   file, memory shared with a forked process",
        }],
        suite_params: &[("kind", "anonymous,huge,file,copy-on-write")],
        duet: Duet::No,
        source: "after page_fault1 to page_fault3 of will-it-scale and lat_pagefault of lmbench",
        notes: "4 KiB pages (PR_SET_THP_DISABLE), 1024 of them per mapping, or 8 transparent huge pages \
                (MADV_HUGEPAGE, allowed for the trial where the kernel has set them to never); mapping, unmapping and forking are not timed",
        ..info("page-fault", "page fault", "the first touch of a page")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "bytes",
            kind: ParamKind::Bytes { min: 4096, max: 1 << 28 },
            default: "64K",
            help: "length of the mapping; every page is written once",
        }],
        source: "after mmap1 of will-it-scale and lat_mmap of lmbench",
        notes: "private anonymous, 4 KiB pages (PR_SET_THP_DISABLE)",
        ..info(
            "mmap-munmap",
            "mmap+touch+munmap",
            "map anonymous memory, write to each page, unmap it",
        )
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "op",
            kind: ParamKind::Choice(&["brk", "madvise", "mprotect"]),
            default: "brk,madvise,mprotect",
            help: "what is done: the heap 64 KiB up, one touch, and down again; 64 KiB touched and given back with \
                   MADV_DONTNEED; the second of 16 pages made read-only and writable again",
        }],
        source: "after brk1 of will-it-scale; madvise and mprotect are definitions of our own",
        notes: "4 KiB pages (PR_SET_THP_DISABLE); mprotect splits the mapping in three and makes it one again",
        ..info("memory", "change", "a change of memory that the process has")
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "kind",
                kind: ParamKind::Choice(&["unix", "tcp", "udp"]),
                default: "unix,tcp,udp",
                help: "a pair of AF_UNIX stream sockets, or a connection over the loopback",
            },
            ParamInfo {
                name: "bytes",
                kind: ParamKind::Bytes { min: 1, max: 32_768 },
                default: "64",
                help: "message size",
            },
        ],
        source: "after lat_unix, lat_tcp and lat_udp of lmbench",
        notes: "two processes, not pinned; one operation is one round trip; TCP_NODELAY; what the loopback \
                does in softirqs is not the tasks' own work",
        ..info(
            "socket-roundtrip",
            "round trip",
            "a message to another process and back over sockets",
        )
    },
    WorkloadInfo {
        source: "after threadspawn1 of will-it-scale",
        notes: "pthread_create and pthread_join of a thread that does nothing, stack of 64 KiB, which the C \
                library keeps between operations",
        ..info("clone-join", "clone+join", "start a thread, wait for its end")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "kind",
            kind: ParamKind::Choice(&["eventfd", "epoll", "signal", "timer"]),
            default: "eventfd,epoll,signal,timer",
            help: "an eventfd written and read; the same found by epoll_wait among 64; a signal to oneself that a \
                   handler takes; a timerfd armed for later and disarmed",
        }],
        source: "signal after lat_sig of lmbench; the others are definitions of our own",
        notes: "one process, nothing is waited for",
        ..info("event", "event", "a process tells itself that something happened")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "op",
            kind: ParamKind::Choice(&["create", "unlink", "rename"]),
            default: "create,unlink,rename",
            help: "which of the three is timed; create includes close",
        }],
        source: "after lat_fs of lmbench (empty files)",
        notes: "tmpfs, 1024 files at a time in one folder; only the named operation is timed",
        ..info("file", "file", "an empty file is made, renamed or removed")
    },
    WorkloadInfo {
        parallel: Parallelism::Parallel,
        source: "after perf bench futex wake, reduced to one waiter; round trip as in lat_ctx",
        notes: "two threads take turns through two futex words; one operation is one round trip, so two wake-ups",
        ..info(
            "futex-wake",
            "round trip",
            "one thread wakes another through a futex and is woken back",
        )
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "interval",
                kind: ParamKind::Duration { max_ns: 10_000_000_000 },
                default: "60ms",
                help: "quiet time before each move; back to back the kernel's lock stays in writer mode and hides the wait",
            },
            ParamInfo {
                name: "moves",
                kind: ParamKind::Integer { min: 1, max: 100_000 },
                default: "5",
                help: "operations per iteration",
            },
        ],
        source: "after perf stat --repeat of cgexec -g cpu:test sh -c exit, in the report of the cgroup RCU patch",
        notes: "the child writes its own pid to cgroup.procs of a cgroup2 child group and execs sh -c exit; \
                timed from before fork to after wait; every single operation is kept",
        exact: ExactMetric::GuestTime,
        suites: &[],
        warmup: 1,
        ..info("cgroup-exec", "move+exec", "fork, move to a cgroup, exec sh -c exit, wait")
    },
    WorkloadInfo {
        params: &[ParamInfo {
            name: "interval",
            kind: ParamKind::Duration { max_ns: 10_000_000_000 },
            default: "1ms",
            help: "length of one sleep",
        }],
        source: "after lat_usleep of lmbench",
        notes: "clock_nanosleep on CLOCK_MONOTONIC, with the timer slack of the process (50 us)",
        exact: ExactMetric::GuestTime,
        suites: &[],
        ..info("sleep", "sleep", "sleep for an interval, and how late the process wakes up")
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "groups",
                kind: ParamKind::Integer { min: 1, max: 100 },
                default: "10",
                help: "groups of senders and receivers",
            },
            ParamInfo {
                name: "fds",
                kind: ParamKind::Integer { min: 1, max: 100 },
                default: "20",
                help: "senders per group, and as many receivers",
            },
            ParamInfo {
                name: "loops",
                kind: ParamKind::Integer { min: 1, max: 1_000_000 },
                default: "100",
                help: "messages from each sender to each receiver of its group",
            },
            ParamInfo {
                name: "bytes",
                kind: ParamKind::Bytes { min: 1, max: 1 << 20 },
                default: "100",
                help: "message size",
            },
            ParamInfo {
                name: "mode",
                kind: ParamKind::Choice(&["process", "thread"]),
                default: "process",
                help: "what senders and receivers are",
            },
            ParamInfo {
                name: "channel",
                kind: ParamKind::Choice(&["socket", "pipe"]),
                default: "socket",
                help: "what messages go through: AF_UNIX stream pairs or pipes",
            },
        ],
        metrics: &[
            TIME,
            MetricInfo { name: "elapsed", unit: "s", better: Better::Lower, primary: false },
        ],
        parallel: Parallelism::Parallel,
        source: "after hackbench of rt-tests and perf bench sched messaging, same defaults",
        notes: "timed from the start signal to the last exit, start-up untimed; an iteration is one whole \
                run, `elapsed` is its wall time and `time` that divided by the messages",
        suites: &[],
        iterations: 3,
        warmup: 1,
        ..info("hackbench", "message", "groups of senders and receivers that pass messages")
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "rooms",
                kind: ParamKind::Integer { min: 1, max: 100 },
                default: "2",
                help: "rooms; a client is in one",
            },
            ParamInfo {
                name: "clients",
                kind: ParamKind::Integer { min: 1, max: 100 },
                default: "8",
                help: "clients of a room",
            },
            ParamInfo {
                name: "messages",
                kind: ParamKind::Integer { min: 1, max: 1_000_000 },
                default: "50",
                help: "messages that a client sends, each to everybody in its room and to itself",
            },
            ParamInfo {
                name: "bytes",
                kind: ParamKind::Bytes { min: 1, max: 1 << 20 },
                default: "64",
                help: "message size",
            },
            ParamInfo {
                name: "mode",
                kind: ParamKind::Choice(&["thread", "process"]),
                default: "thread",
                help: "whether a client is two threads of the one process or a process of two threads; the server \
                       is threads always",
            },
        ],
        metrics: &[
            MetricInfo { name: "throughput", unit: "1/s", better: Better::Higher, primary: true },
            MetricInfo { name: "elapsed", unit: "s", better: Better::Lower, primary: false },
        ],
        parallel: Parallelism::Parallel,
        source: "the shape of VolanoMark (rooms, clients, every message to everyone in the room); it is not \
                 VolanoMark, and its numbers are not comparable with that",
        notes: "TCP over the loopback, TCP_NODELAY; one operation is one delivery of a message to one client, so \
                clients x clients x messages x rooms in an iteration, which is one whole run; the server has a \
                thread that reads and a thread that writes for every connection, a client one that sends and one \
                that receives; timed from when all are connected until all have heard everything; rooms=10, \
                clients=20 is the shape that scheduler reports used",
        suites: &[],
        iterations: 3,
        warmup: 1,
        ..info(
            "chat",
            "delivery",
            "clients in rooms that talk to everybody there, through a server",
        )
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "size",
                kind: ParamKind::Choice(&["one", "tiny", "small", "large"]),
                default: "tiny",
                help: "what is built: one object (whether it works), 15 objects of lib/, all of a tinyconfig kernel, all of \
                       a defconfig kernel (which takes KVM and an image of your own: the built-in one has no such tree)",
            },
            ParamInfo {
                name: "jobs",
                kind: ParamKind::Integer { min: 0, max: 4096 },
                default: "0",
                help: "make -j; 0: 16 times the CPUs, but no more than memory / 96 MiB",
            },
            ParamInfo {
                name: "tree",
                kind: ParamKind::Choice(&["image", "tmpfs"]),
                default: "image",
                help: "where the sources lie: on the image's disk, or copied into memory before (objects always go \
                       to memory)",
            },
        ],
        metrics: &[
            TIME,
            MetricInfo { name: "user-time", unit: "ns", better: Better::Lower, primary: false },
            MetricInfo { name: "system-time", unit: "ns", better: Better::Lower, primary: false },
            MetricInfo { name: "percent-cpu", unit: "%", better: Better::Higher, primary: false },
            MetricInfo {
                name: "context-switches",
                unit: "count",
                better: Better::Lower,
                primary: false,
            },
        ],
        parallel: Parallelism::Parallel,
        duet: Duet::No,
        source: "after kernbench: make -j of a kernel, elapsed, user and system time, percent CPU, context switches",
        notes: "needs an image with compiler and tree: `image: kernbench`; the tree is configured and prepared when \
                the image is built, objects are removed untimed before each build. Not kernbench's numbers: one load \
                instead of half, optimal and maximal, a fixed tree and the image's compiler instead of the kernel \
                at hand, no `sleeps`, and by default a small part of a kernel",
        suites: &[],
        iterations: 3,
        warmup: 1,
        min_interval_ms: 0,
        ..info(KERNBENCH, "build", "make -j of a fixed kernel tree, in the image")
    },
    WorkloadInfo {
        params: &[
            ParamInfo {
                name: "repeat",
                kind: ParamKind::Integer { min: 1, max: 1_000_000 },
                default: "1",
                help: "executions per iteration; without metrics of its own the mean is taken",
            },
            ParamInfo {
                name: "duet",
                kind: ParamKind::Choice(&["no", "yes"]),
                default: "no",
                help: "whether two guests may run it at the same time: not if caches, memory bandwidth, a disk or \
                       power limit it",
            },
        ],
        duet: Duet::Asked,
        source: "the user's own program",
        notes: "keys: argv, files, env, setup, teardown, repeat, cpus, cgroup, nice, metrics [{name, unit, better, \
                regex | json-pointer}]; without metrics: time, user-time, system-time (ns) and context-switches",
        parallel: Parallelism::Parallel,
        suites: &[],
        warmup: 1,
        min_interval_ms: 0,
        ..info(COMMAND, "execution", "a program of your own, started and waited for")
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParamKind;

    /// The trials of a suite: each workload with each combination of its values.
    fn trials(suite: &str) -> usize {
        let of = |info: &WorkloadInfo| {
            let values = |param| info.suite_default(param).split(',').count();
            info.params.iter().map(values).product::<usize>()
        };
        WORKLOADS.iter().filter(|info| info.suites.contains(&suite)).map(of).sum()
    }

    #[test]
    fn suite_micro_waits_for_nothing_and_fits_two_minutes() {
        let micro = || WORKLOADS.iter().filter(|info| info.suites.contains(&"micro"));
        assert!(micro().all(|info| info.exact == ExactMetric::Instructions));
        // Seen: a trial takes 0.8 s of guest time at these terms, a second of that three real ones.
        assert!((28..=34).contains(&trials("micro")), "{}", trials("micro"));
    }

    #[test]
    fn suite_values_are_of_parameters_that_there_are() {
        for info in WORKLOADS {
            for (name, values) in info.suite_params {
                let param = info.params.iter().find(|param| param.name == *name).unwrap();
                let is_one = |value: &str| match param.kind {
                    ParamKind::Integer { min, max } => {
                        value.parse().is_ok_and(|number| (min..=max).contains(&number))
                    }
                    ParamKind::Choice(words) => words.contains(&value),
                    _ => false,
                };
                assert!(values.split(',').all(is_one), "{name}: {values}");
            }
        }
    }
}
