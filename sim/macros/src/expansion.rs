//! The test that replaces the function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Result};

use crate::arguments::{Arguments, Outages};
use crate::client::{Client, Takes};
use crate::properties;

pub(crate) fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let arguments = Arguments::parse(arguments)?;
    let Client {
        mut function,
        takes,
    } = Client::parse(item)?;
    if takes == Takes::Context
        && let Some(world) = arguments.world.as_ref().or(arguments.finally.as_ref())
    {
        let why = "the function does not take a world: give it a second parameter, an `Rc` of it";
        return Err(Error::new_spanned(world, why));
    }
    let attributes = std::mem::take(&mut function.attrs);
    let visibility = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let name = function.sig.ident.clone();
    let body = &function.block;
    let stated = properties::stated(quote!(#body));
    let settings = settings(&arguments);
    let world = match (takes, &arguments.world) {
        (Takes::Context, _) => None,
        (Takes::ContextAndWorld, Some(world)) => Some(quote!(.world(#world))),
        (Takes::ContextAndWorld, None) => Some(quote!(.world(::core::default::Default::default))),
    };
    let finally = arguments.finally.iter();
    let expected = arguments.properties.iter().chain(&stated);
    let client = match takes {
        Takes::Context => quote!(|ctx, _| #name(ctx)),
        Takes::ContextAndWorld => quote!(#name),
    };
    Ok(quote! {
        #[::core::prelude::v1::test]
        #(#attributes)*
        #visibility fn #name() {
            #function
            ::quorlock_sim::property_test::PropertyTest::at(
                ::quorlock_sim::property_test::CodeLocation::new(
                    ::core::env!("CARGO_PKG_NAME"),
                    ::core::module_path!(),
                    ::core::stringify!(#name),
                ),
            )
            #settings
            #(.expecting(#expected))*
            #world
            #(.finally(#finally))*
            .run(#client);
        }
    })
}

fn settings(arguments: &Arguments) -> TokenStream {
    let seeds = arguments.seeds.iter();
    let clients = arguments.clients.iter();
    let nodes = arguments.nodes.iter();
    let faults = arguments.faults.iter();
    let millis = arguments.duration_millis.iter();
    let outages = match arguments.outages {
        Outages::Drawn => None,
        Outages::None => Some(quote!(.without_outages())),
    };
    let determinism = arguments
        .check_determinism
        .then(|| quote!(.checking_determinism()));
    quote! {
        #(.seeds(#seeds))*
        #(.clients(#clients))*
        #(.nodes(#nodes))*
        #(.faults(#faults))*
        #(.lasting(::core::time::Duration::from_millis(#millis)))*
        #outages
        #determinism
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "async fn sells(ctx: Context, shop: Rc<Shop>) {}";

    /// Returns the error that the compiler reports.
    fn refused(arguments: &str, item: &str) -> String {
        let expanded = expand(arguments.parse().unwrap(), item.parse().unwrap());
        expanded.unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_argument_is_told_what_to_say() {
        for (arguments, says) in [
            (
                "seed = 3",
                "unknown argument `seed`: there are `seeds`, `clients`",
            ),
            ("seeds = \"many\"", "expected a number, such as `3`"),
            ("seeds = 0", "0 is too few: it must be at least 1"),
            ("clients = 61", "61 is not between 1 and 60"),
            ("nodes = 0", "0 is not between 1 and 15"),
            ("faults = inside", "expected a string, such as `\"inside\"`"),
            ("duration = \"long\"", "expected a length of simulated time"),
            ("outages = \"all\"", "expected `\"drawn\"` or `\"none\"`"),
            ("properties = \"one\"", "expected a list of names"),
            ("check_determinism = 1", "expected `true` or `false`"),
            ("seeds = 1, seeds = 2", "`seeds` is there twice"),
        ] {
            let error = refused(arguments, CLIENT);
            assert!(error.starts_with(says), "{arguments}: {error}");
        }
    }

    #[test]
    fn a_function_that_is_no_client_is_told_why() {
        for (item, says) in [
            (
                "fn sells(ctx: Context) {}",
                "a client waits for locks: make it an `async fn`",
            ),
            (
                "async fn sells<T>(ctx: T) {}",
                "a test has no generic parameters",
            ),
            (
                "async fn sells(ctx: Context) -> u8 { 3 }",
                "a client returns nothing",
            ),
            ("async fn sells() {}", "a client takes a `Context`"),
            ("struct Shop;", "a test is a function"),
        ] {
            let error = refused("", item);
            assert!(error.starts_with(says), "{item}: {error}");
        }
        let error = refused("world = Shop::open", "async fn sells(ctx: Context) {}");
        assert!(error.contains("does not take a world"), "{error}");
    }

    #[test]
    fn the_test_has_what_the_attribute_says_and_expects_what_the_function_states() {
        let item = "#[ignore] async fn sells(ctx: Context, shop: Rc<Shop>) {
            loop {
                if shop.is_open() { always!(map::<u8, u8>(0), \"no piece is sold twice\", \"{}\", 3); }
                quorlock_sim::sometimes!(true, \"it is open\");
            }
        }";
        let arguments = "seeds = 200, faults = \"inside\", clients = 3, duration = \"5s\", properties = [\"another\"], check_determinism = true";
        let test = expand(arguments.parse().unwrap(), item.parse().unwrap());
        let test = test.unwrap().to_string().replace(' ', "");
        for part in [
            "#[ignore]fnsells(){asyncfnsells(",
            ".seeds(200u64)",
            ".clients(3u16)",
            ".faults(\"inside\")",
            ".lasting(::core::time::Duration::from_millis(5000u64))",
            ".checking_determinism()",
            ".expecting(\"another\").expecting(\"nopieceissoldtwice\").expecting(\"itisopen\")",
            ".world(::core::default::Default::default)",
            ".run(sells)",
        ] {
            assert!(test.contains(part), "{part} in {test}");
        }
        let alone = expand(
            "".parse().unwrap(),
            "async fn sells(ctx: Context) {}".parse().unwrap(),
        );
        let alone = alone.unwrap().to_string().replace(' ', "");
        assert!(alone.contains(".run(|ctx,_|sells(ctx))"), "{alone}");
    }
}
