//! Fuzzes command lines of quorlock.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorlock_cli::fuzzed::command_lines(data));
