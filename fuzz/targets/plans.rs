//! Fuzzes plans of the simulator.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_sim_lab::fuzzed::plans(data));
