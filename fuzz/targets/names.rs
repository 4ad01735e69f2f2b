//! Fuzzes names of locks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_redis::fuzzed::names(data));
