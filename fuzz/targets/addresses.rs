//! Fuzzes addresses of servers, groups and clusters.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_redis::fuzzed::addresses(data));
