//! The function with the attribute.

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::{Error, ItemFn, Result, ReturnType};

/// An async function that is a client, and the parameters that it takes.
pub(crate) struct Client {
    pub(crate) function: ItemFn,
    pub(crate) takes: Takes,
}

/// The parameters of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Takes {
    Context,
    ContextAndWorld,
}

impl Client {
    pub(crate) fn parse(item: TokenStream) -> Result<Self> {
        let function: ItemFn = syn::parse2(item)
            .map_err(|error| Error::new(error.span(), format!("a test is a function: {error}")))?;
        let signature = &function.sig;
        if signature.asyncness.is_none() {
            let why = "a client waits for locks: make it an `async fn`";
            return Err(Error::new(signature.fn_token.span(), why));
        }
        if !signature.generics.params.is_empty() {
            let why = "a test has no generic parameters";
            return Err(Error::new(signature.generics.span(), why));
        }
        if let ReturnType::Type(_, output) = &signature.output {
            let why =
                "a client returns nothing: state what must hold by `always!`, or let it panic";
            return Err(Error::new(output.span(), why));
        }
        let takes = match signature.inputs.len() {
            1 => Takes::Context,
            2 => Takes::ContextAndWorld,
            _ => {
                let why = "a client takes a `Context`, and an `Rc` of the world if it shares one: \
                           `async fn sells(ctx: Context, shop: Rc<Shop>)`";
                return Err(Error::new(signature.paren_token.span.join(), why));
            }
        };
        Ok(Client { function, takes })
    }
}
