//! How often a lock breaks in a deployment: the expected number of violations in a horizon, with a sound bound.
//!
//! # The law
//! Each process of a [`Deployment`] strikes each of its `n` targets at the rate `r`, at the times of a Poisson process. A share
//! `c` of the strikes of a target hits all targets at the same instant. So there is a Poisson process of strikes of one target with the
//! rate `n r (1 - c)`, and one of strikes of all with the rate `r c`; all of them are independent. The length of a fault is
//! independent of everything else. Strikes that are longer than the longest that is run are taken out: by thinning, the others
//! are independent Poisson processes too, with the total rate `L`.
//!
//! # Clusters
//! Two successive strikes are of one cluster if they are less than the window `W` apart. Three assumptions lead from clusters to runs:
//! - *Faults end*: the longest fault and its effects are over after `W`, so that a cluster finds the system as if no fault had
//!   ever happened. By default `W` is the longest length that is run, three times a lease with its clock margin, and a few
//!   calls ([`Deployment::window`]).
//! - *Nothing breaks alone*: without a fault, the property holds. `rate` runs 64 plans without strikes, and states a violation in
//!   place of a rate.
//! - *Faults strike blindly*: when they strike does not depend on the work of the clients.
//!
//! A violation is counted once for each cluster. The gaps between strikes are exponential with the rate `L`, so a gap is shorter
//! than `W` with the probability `p = 1 - exp(-L W)`. A strike begins a cluster if the gap before it is not, and each further
//! strike joins with the probability `p`: in a horizon `H`, the expected number of clusters of `k` strikes is
//! `H L exp(-2 L W) p^(k-1)`, and that of clusters of more than `K` is `H L exp(-L W) p^K`. The kinds of the strikes of a
//! cluster are independent of their number and of each other, so a *stratum*, the clusters with the same kinds, has the
//! multinomial share of these.
//!
//! # Runs
//! A run of a stratum has one cluster: its order, targets, lengths, and gaps (exponential, less than `W`) are drawn from the law
//! under the condition of the stratum; a strike of all targets has one length. It begins after the window, at a time that is spread
//! over a lease and a turn of work, so that it meets the clients as they are at any time, and ends a window after the last
//! fault. The share of runs that break is an estimate of the probability that a cluster of the stratum does, and the rate is the sum
//! over all strata of the expected number of clusters times that share.
//!
//! # Bounds
//! Let stratum `s` have `w_s` clusters in the horizon, each of which breaks with the probability `q_s`. The expected number of
//! violating clusters is the sum of `w_s q_s`, plus at most one for each larger cluster and for each strike that is too long (with
//! all clusters that it touches). For each stratum, the seeds are looked at after 64, 128, 256 runs and so on. At look `j` of one
//! of `S` strata, the interval of Clopper and Pearson has the level `1 - 0.05 / (S j (j + 1))`. These sum up to 0.05 over all
//! looks and strata, so with a probability of 95 % *every* interval at *every* look has its `q_s`, whatever stratum is run
//! next and whenever the search ends: both may depend on what was found. Then the sums of the lower and of the upper bounds times
//! `w_s` enclose the expected number. A stratum that was not run has the interval from 0 to 1; what is larger or too long has 1 as its
//! upper bound. No variance is estimated, and strata need not be independent.
//!
//! # Availability
//! Each run is measured from its first strike on: for how long a client asked for a lock that no client held. Locks that pass from
//! client to client are free for moments without any fault, so the share of such time in the runs without strikes is taken off: the rest is
//! the *outage* of a cluster. The sum over all strata of the number of clusters times the mean outage is the time in the horizon in
//! which faults keep clients from a lock. It is an estimate without bounds; strata that were not run are not in it.
//!
//! The bound is about the simulated deployment with the rates of the file. It says nothing about a wrong rate or a fault that the file
//! does not have.

mod count;
mod deployment;
mod estimate;
mod length;
mod process;
mod sample;
mod search;
mod served;
pub mod split;
mod strata;

pub(in crate::study) use count::strike_by_law;
pub use count::{Count, Counted};
pub use deployment::Deployment;
pub use estimate::{Estimate, Part};
pub(in crate::study) use length::unit;
pub use length::{Length, NotALength};
pub use process::{Each, Process};
pub use search::{Found, Search};
pub use served::Serving;
pub use strata::{Strata, Stratum, Strike};
