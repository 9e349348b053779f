//! Guests of kvrt in Rust: no std, no dependencies, no pointer in sight.
//!
//! A handler judges one action:
//!
//! ```
//! use kvrt::{abi::*, reject, Action, Answer, Envelope, Handler};
//!
//! #[derive(Default)]
//! struct Evict;
//!
//! impl Handler for Evict {
//!     fn handle(&self, action: Action, _: Envelope) -> Answer {
//!         match action.payload().get("block_hashes").hashes() {
//!             Some(_) => Answer::Accept,
//!             None => reject!(REASON_INVALID_PAYLOAD, "block_hashes must be a list of integers, at least one"),
//!         }
//!     }
//! }
//!
//! kvrt::guest!(Evict: handler);
//! # fn main() {}
//! ```
//!
//! What a role is shown lies in the frame of the current call, and the borrow checker
//! keeps it there. A guest keeps nothing between calls but what it made of its
//! parameters, which its roles see through `&self`. [`testing`] runs a guest natively.
#![cfg_attr(target_arch = "wasm32", no_std)]
#![warn(missing_docs)]

#[allow(missing_docs)]
pub mod abi;
mod answer;
mod digits;
mod frame;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod guest;
mod host;
mod lineage;
mod role;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod value;
mod write;

pub use answer::{Answer, Text};
pub use frame::{Action, Context, Document, Envelope, Worker};
pub use host::*;
pub use lineage::{Block, Frontier, Lineage, Rank};
pub use role::{no_parameters, Handler, Parser, Policy};
pub use value::{is, Elems, Entries, Value};
pub use write::{Node, Writer};
