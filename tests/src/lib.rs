//! Code that tests of several crates share.
//!
//! | to read | see |
//! |---|---|
//! | a real `redis-server` that ends with the test | [`server`] |
//! | a Sentinel group of such processes | [`sentinels`] |
//! | a Redis Cluster of such processes | [`cluster`] |
//! | tests that are ignored, with a reason, where there is no server | [`trials`] |
//! | waiting for a condition, within a bound | [`wait`] |
//! | a network that loses replies and cuts connections | [`proxy`] |
//! | a network on which every message takes its time | [`relay`] |
//! | requests in few words | [`requests`] |
//! | certificates, and an authority that signs them | [`certificates`] |
//! | Redisson's keys | [`wire`] |
//! | clients of the product, and the keys under a name | [`clients`] |
//! | driving a future for a number of polls | [`polls`] |
//! | recording the wake-ups of a transport | [`heard`] |
//! | a simulated server that ends with the test | [`simulated`] |
//! | code on pages of the documentation | [`page`] |
//! | one sequence of requests through several lock servers | [`conformance`] |

pub mod certificates;
pub mod clients;
pub mod cluster;
pub mod conformance;
mod guardian;
pub mod heard;
pub mod page;
pub mod polls;
pub mod proxy;
pub mod relay;
pub mod requests;
pub mod sentinels;
pub mod server;
pub mod simulated;
pub mod steady;
pub mod trials;
pub mod wait;
pub mod wire;

/// The Rust code on the pages of the documentation. Each block is a test. (The block of the README is a test of
/// `quorlock`.)
#[cfg(doctest)]
mod documentation {
    macro_rules! pages {
        ($($page:ident)*) => {
            $(
                #[doc = include_str!(concat!("../../docs/src/", stringify!($page), ".md"))]
                mod $page {}
            )*
        };
    }

    pages! {
        architecture breaks campaigns command connections deployments exhaustive faq fencing glossary guide introduction leader matrix migration operating performance plans
        predicted protocol
        recipes redis redisson safety scenarios scripts simulator testing threads
    }
}
