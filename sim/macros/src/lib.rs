//! The attribute `quorlock_sim::test`. Use it from the crate `quorlock-sim`, which re-exports it.

mod arguments;
mod client;
mod expansion;
mod properties;

use proc_macro::TokenStream;

/// Turns an async function into a test, with the function as a client under the faults that break locks.
///
/// The function takes a `Context` and, if clients share a world, an `Rc` of it. Each client runs the function as its
/// own process, and again after a restart.
///
/// ```ignore
/// #[quorlock_sim::test(seeds = 200, faults = "inside", clients = 3)]
/// async fn no_piece_is_sold_twice(ctx: Context, shop: Rc<Shop>) {
///     // ..
/// }
/// ```
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `seeds = 200` | number of runs | 100 |
/// | `clients = 3` | number of clients, 1 to 60 | 3 |
/// | `nodes = 5` | number of nodes, 1 to 15; with more than one, locks need a majority | 1 |
/// | `faults = "inside"` | faults: `inside`, `all`, `none`, or a list of kinds | `inside` |
/// | `outages = "none"` | whether resources have outages; `"none"` if they always work | `"drawn"` |
/// | `duration = "5s"` | length of a run in simulated time | `2s` |
/// | `world = Shop::open` | function that creates the shared world of a run | `Default::default` |
/// | `finally = look` | function that examines `&Shop` at the end of a run | none |
/// | `properties = ["..", ".."]` | names of properties that other functions state, and that a run must check | none |
/// | `check_determinism = true` | whether each run is made twice and compared, event for event | `false` |
///
/// Properties that the function itself states with `always!`, `sometimes!` and `eventually!` are found in its body. At
/// least one run must check each of them. Other attributes, such as `#[ignore]`, are kept on the test.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match expansion::expand(arguments.into(), item.into()) {
        Ok(expanded) => expanded.into(),
        Err(error) => error.to_compile_error().into(),
    }
}
