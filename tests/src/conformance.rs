//! Runs one sequence of requests on several lock servers, which must all give the same answers.
//!
//! The specification ([`quorlock_core::node`]) runs first. Each other [`Arm`] must then give the same replies, publish
//! the same wake-ups and end with the same keys. On a real server, time passes by ageing the keys, not by waiting.
//! Real time that passes shows only in TTLs, and the comparison allows for it.
//!
//! A [`Twin`] compares a real server and a simulated one byte for byte, for any requests.

/// Lua: the fields and values of a hash, sorted by field, because a server may return them in any order.
macro_rules! sorted {
    () => {
        "
local function sorted(flat)
  local fields, of, value = {}, {}, {}
  for i = 1, #flat, 2 do
    table.insert(fields, flat[i])
    of[flat[i]] = flat[i + 1]
  end
  table.sort(fields)
  for _, field in ipairs(fields) do
    table.insert(value, field)
    table.insert(value, of[field])
  end
  return value
end"
    };
}

mod agree;
mod arm;
mod cases;
mod embedded_arm;
pub mod files;
mod generate;
mod names;
mod raw;
mod redis_arm;
mod spec_arm;
mod step;
mod store_arm;
mod twin;

pub use agree::{Coverage, agree};
pub use arm::{Arm, Looks};
pub use cases::Cases;
pub use embedded_arm::EmbeddedArm;
pub use generate::{evicting_sequences, gathered_sequences, sequences};
pub use names::{many_names, names, owners};
pub use redis_arm::RedisArm;
pub use spec_arm::SpecArm;
pub use step::{Plant, Step};
pub use store_arm::StoreArm;
pub use twin::{Findings, Twin};
