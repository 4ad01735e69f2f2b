//! The page "Your own algorithm in the matrix": its code is the example that every build compiles.

const PAGE: &str = include_str!("../../../../docs/src/own-algorithm.md");
const EXAMPLE: &str = include_str!("../../examples/own_algorithm.rs");

#[test]
fn the_code_of_the_page_is_the_example_and_has_at_most_80_lines() {
    let (_, rest) = PAGE.split_once("```rust,no_run\n").unwrap();
    let (code, _) = rest.split_once("```").unwrap();
    // The page does not need the line that keeps rustfmt away.
    let (first, example) = EXAMPLE.split_once('\n').unwrap();
    assert_eq!(first, "#![cfg_attr(rustfmt, rustfmt_skip)]");
    assert_eq!(
        code, example,
        "copy sim/lab/examples/own_algorithm.rs to the page"
    );
    assert!(code.lines().count() <= 80, "{} lines", code.lines().count());
}
