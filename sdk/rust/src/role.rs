//! The roles, and the macro that turns a type into a guest.

use crate::{Action, Answer, Context, Document, Envelope, Text, Value};

/// Judges actions.
pub trait Handler {
    /// Judges one action. `envelope` lists it with all others that go to this guest.
    fn handle(&self, action: Action, envelope: Envelope) -> Answer;
}

/// Reads a foreign dialect.
pub trait Parser {
    /// Turns a document into an envelope: [`Answer::Write`], or a rejection.
    fn parse(&self, document: Document) -> Answer;
}

/// Formulates hints for requests.
pub trait Policy {
    /// Formulates actions: [`Answer::Write`] with an envelope, or [`Answer::Accept`]
    /// for none.
    fn formulate(&self, context: Context) -> Answer;
}

/// Makes a guest that takes no parameters, and refuses any.
pub fn no_parameters<T: Default>(parameters: Value) -> Result<T, Text> {
    if parameters.is_absent() || parameters.is_null() || (parameters.is_map() && parameters.is_empty()) {
        return Ok(T::default());
    }
    Err(Text::new(format_args!("this guest takes no parameters")))
}

/// Makes a type the guest of this module. The roles are those whose traits it has:
///
/// ```ignore
/// kvrt::guest!(Evict: handler);                         // Evict is Default
/// kvrt::guest!(Retain: handler; init = Retain::new);    // fn new(Value) -> Result<Retain, Text>
/// kvrt::guest!(Both: handler, parser);
/// kvrt::guest!(Raw: handler; init = Raw::new, features = FEATURE_RAW_PAYLOAD);
/// ```
#[macro_export]
macro_rules! guest {
    (@handler) => {
        #[no_mangle]
        unsafe extern "C" fn kvrt_handle(frame: *const u8, len: u32, position: u32) -> i64 {
            $crate::guest::handle(&GUEST, $crate::guest::frame(frame, len), position)
        }
    };
    (@parser) => {
        #[no_mangle]
        unsafe extern "C" fn kvrt_parse(frame: *const u8, len: u32) -> i64 {
            $crate::guest::parse(&GUEST, $crate::guest::frame(frame, len))
        }
    };
    (@policy) => {
        #[no_mangle]
        unsafe extern "C" fn kvrt_formulate(frame: *const u8, len: u32) -> i64 {
            $crate::guest::formulate(&GUEST, $crate::guest::frame(frame, len))
        }
    };
    ($t:ty: $($role:ident),+) => {
        $crate::guest!($t: $($role),+; init = $crate::no_parameters::<$t>);
    };
    ($t:ty: $($role:ident),+; init = $init:expr) => {
        $crate::guest!($t: $($role),+; init = $init, features = 0);
    };
    ($t:ty: $($role:ident),+; init = $init:expr, features = $features:expr) => {
        #[cfg(target_arch = "wasm32")]
        mod kvrt_guest {
            use super::*;

            static GUEST: $crate::guest::Cell<$t> = $crate::guest::Cell::new();

            #[no_mangle]
            extern "C" fn kvrt_abi_1() {}

            #[no_mangle]
            extern "C" fn kvrt_arena(size: u32) -> i64 {
                $crate::guest::arena(size)
            }

            #[no_mangle]
            unsafe extern "C" fn kvrt_init(frame: *const u8, len: u32) -> i64 {
                $crate::guest::init(&GUEST, $crate::guest::frame(frame, len), $init, $features)
            }

            $($crate::guest!(@$role);)+
        }
    };
}
