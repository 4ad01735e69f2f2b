//! The page "Your own algorithm in the matrix": its code is the example that every build compiles.

const PAGE: &str = include_str!("../../../../docs/src/own-algorithm.md");
const EXAMPLE: &str = include_str!("../../examples/own_algorithm.rs");

#[test]
fn the_code_of_the_page_is_the_example_and_has_at_most_80_lines() {
    let (_, rest) = PAGE.split_once("```rust,no_run\n").unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    // The page needs neither the title nor the line that keeps rustfmt away.
    let (_, example) = EXAMPLE
        .split_once("#![cfg_attr(rustfmt, rustfmt_skip)]\n")
        .unwrap();
    assert_eq!(
        code, example,
        "copy sim/lab/examples/own_algorithm.rs to the page"
    );
    assert!(code.lines().count() <= 80, "{} lines", code.lines().count());
}
