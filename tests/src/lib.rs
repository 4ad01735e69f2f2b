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
        recipes records redis redisson runbooks safety scenarios scripts simulator stores testing threads
    }
}
