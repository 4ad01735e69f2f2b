//! The attribute of `quorlock_sim::test`. Use it from the crate `quorlock-sim`, which re-exports it.

mod arguments;
mod client;
mod expansion;
mod properties;

use proc_macro::TokenStream;

/// Makes a test of an async function that is a client under the faults that break locks.
///
/// The function takes a `Context`, and an `Rc` of what all clients share if they share something. Each client runs it as a
/// process of its own, and again when that was restarted.
///
/// ```ignore
/// #[quorlock_sim::test(seeds = 200, faults = "inside", clients = 3)]
/// async fn no_piece_is_sold_twice(ctx: Context, shop: Rc<Shop>) {
///     // ..
/// }
/// ```
///
/// | argument | says | without |
/// |---|---|---|
/// | `seeds = 200` | how many runs | 100 |
/// | `clients = 3` | how many clients, 1 to 60 | 3 |
/// | `nodes = 5` | on how many nodes, 1 to 15; more than one are a majority | 1 |
/// | `faults = "inside"` | `inside`, `all`, `none`, or a list of kinds | `inside` |
/// | `outages = "none"` | that resources beside the lock always work | `"drawn"` |
/// | `duration = "5s"` | how long a run is in simulated time | `2s` |
/// | `world = Shop::open` | what makes the shared world of a run | `Default::default` |
/// | `finally = look` | what looks at `&Shop` when a run is at its end | nothing |
/// | `properties = ["..", ".."]` | names of properties that other functions state, and that must get their chance | none |
///
/// Properties that the function itself states by `always!`, `sometimes!` and `eventually!` are found in it, and must get their
/// chance in one of the runs. Other attributes, such as `#[ignore]`, stay those of the test.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match expansion::expand(arguments.into(), item.into()) {
        Ok(expanded) => expanded.into(),
        Err(error) => error.to_compile_error().into(),
    }
}
