//! Fuzzes command lines of quorlock-sim.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_sim_lab::fuzzed::command_lines(data));
