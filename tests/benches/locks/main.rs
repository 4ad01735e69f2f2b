//! Measures the locks on real Redis servers, in comparison with the bare scripts and the crate `rslock`.
//!
//! All figures are ratios, or counts, from one run. The contestants take turns in random order in one loop, so that
//! other load of the machine affects all of them equally. The noise floor is the ratio of two identical bare runs.

mod callers;
mod contestant;
mod distance;
mod fair;
mod greedy;
mod handover;
mod herd;
mod keeping;
mod options;
mod process;
mod progress;
mod readers;
mod report;
mod uncontended;
mod waiters;

use std::process::ExitCode;

use options::{Command, Options};
use quorlock_testbed::server;
use report::{Figure, Report};

/// One group of figures.
struct Case {
    name: &'static str,
    about: &'static str,
    run: fn(&Options) -> Vec<Figure>,
}

const CASES: &[Case] = &[
    Case {
        name: "uncontended",
        about: "one caller acquires and releases a free lock",
        run: uncontended::run,
    },
    Case {
        name: "distance",
        about: "one caller, and five servers behind 0.25 and 0.5 ms in each direction",
        run: distance::run,
    },
    Case {
        name: "callers",
        about: "64 callers on 64 names",
        run: callers::run,
    },
    Case {
        name: "handover",
        about: "two clients in turn, holds of 5 ms",
        run: handover::run,
    },
    Case {
        name: "greedy",
        about: "2 and 10 processes that ask again at once, holds of 5 ms",
        run: greedy::run,
    },
    Case {
        name: "waiters",
        about: "50 waiters of one process on one name",
        run: waiters::run,
    },
    Case {
        name: "herd",
        about: "50 waiting processes on one name",
        run: herd::run,
    },
    Case {
        name: "fair",
        about: "2, 10 and 50 clients of one fair lock",
        run: fair::run,
    },
    Case {
        name: "readers",
        about: "1,000 readers of one name, and one more",
        run: readers::run,
    },
    Case {
        name: "keeping",
        about: "10,000 locks held by one client for five minutes",
        run: keeping::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = process::run_as_child(&arguments) {
        return code;
    }
    let options = match Options::parse(&arguments) {
        Ok(Command::Run(options)) => options,
        Ok(Command::Help) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Command::List) => {
            for case in CASES {
                println!("{:12} {}", case.name, case.about);
            }
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("{problem}\nSee --help.");
            return ExitCode::from(2);
        }
    };
    if !server::is_installed() {
        eprintln!(
            "redis-server is not on the PATH, but these benchmarks need real servers.\n\
             Install it (apt-get install redis-server) and run again, \
             or run `cargo bench -p quorlock-tests --bench core`, which needs no server."
        );
        return ExitCode::FAILURE;
    }
    let mut report = Report::new(&options);
    let chosen: Vec<_> = CASES.iter().filter(|c| options.wants(c.name)).collect();
    if chosen.is_empty() {
        eprintln!("No case has {:?} in its name. See --list.", options.filters);
        return ExitCode::from(2);
    }
    for case in chosen {
        eprintln!("{}: {}", case.name, case.about);
        report.extend((case.run)(&options));
    }
    report.print();
    match report.write_json() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
