//! Fuzzes plans of the simulator.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_sim::fuzzed::plans(data));
