//! Tests of Quorlock that need more than one crate.
