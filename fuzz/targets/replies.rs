//! Fuzzes bytes from servers.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_redis::fuzzed::replies(data));
