//! Entry points for fuzzing: plans and command lines made of arbitrary bytes.
//!
//! Each function accepts any bytes, and panics if one of its guarantees is violated. The targets in `fuzz/` call these
//! functions. The unit test calls them with every input of the corpora there.

mod plans;

pub use self::plans::plans;
pub use crate::cli::fuzzed::command_lines;

#[cfg(test)]
mod tests;
