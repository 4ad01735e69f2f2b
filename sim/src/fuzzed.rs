//! What any bytes may be taken for: plans and command lines.
//!
//! Each function takes any bytes, and panics where one of its promises is broken. The targets in `fuzz/` call them, and the test
//! calls them with every input of the corpora there.

mod plans;

pub use self::plans::plans;
pub use crate::cli::fuzzed::command_lines;

#[cfg(test)]
mod tests;
