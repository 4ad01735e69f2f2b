//! Code that tests share. Real servers are in `quorlock-testbed`.
//!
//! | to read | see |
//! |---|---|
//! | requests in few words | [`requests`] |
//! | Redisson's keys | [`wire`] |
//! | clients of the product, and the keys under a name | [`clients`] |
//! | driving a future for a number of polls | [`polls`] |
//! | a server that takes long to start, shared | [`pool`] |
//! | recording the wake-ups of a transport | [`heard`] |
//! | a simulated server that ends with the test | [`simulated`] |
//! | code on pages of the documentation | [`page`] |
//! | one sequence of requests through several lock servers | [`conformance`] |

pub mod clients;
pub mod conformance;
pub mod heard;
pub mod page;
pub mod polls;
pub mod pool;
pub mod requests;
pub mod simulated;
pub mod steady;
pub mod wire;

/// The Rust code on the pages of the documentation. Each block is a test. (The block of the README is a test of
/// `quorlock`.)
#[cfg(doctest)]
mod documentation {
    // A page with a hyphen in its name is a module of the word before it.
    macro_rules! pages {
        ($($part:ident in $folder:literal: $($page:ident $(-$word:ident)*),*;)*) => {
            $(
                mod $part {
                    $(
                        #[doc = include_str!(concat!(
                            "../../docs/src/", $folder, stringify!($page), $("-", stringify!($word),)* ".md"
                        ))]
                        mod $page {}
                    )*
                }
            )*
        };
    }

    pages! {
        book in "": architecture, breaks, campaigns, command, deployments, exhaustive, faq, fencing, glossary, introduction, leader, machines, matrix,
            migration, operating, own-algorithm, performance, plans, predicted, protocol, rate, records, redis, redisson, runbooks, safety, scenarios, scripts, simulator,
            stores, studies, testing, threads;
        tutorial in "tutorial/": fencing, first-lock, majority, service, tests;
        how_to in "how-to/": axum, blocking, cluster, connect, cron, doctor, fair-read-write, force-release, hand-over, install, kubernetes, lost, python, reentry,
            restarts, semaphore, sentinel, servers, several-locks, shell, tls, turmoil;
        reference in "reference/": addresses, config-errors, connection-errors, errors, rights, servers, settings;
        explanation in "explanation/": clock-margin, leases, trust, waiting;
    }
}
