//! What a role answers.

use crate::write::Writer;
use core::fmt::{self, Write};

/// The verdict of a role.
pub enum Answer {
    /// Taken, and passed on as it came.
    Accept,
    /// Not taken. [`reject!`](crate::reject) makes one.
    Reject {
        /// Why: one of the `REASON_` constants.
        reason: u32,
        /// For people.
        detail: Text,
    },
    /// Not taken, for the reason that a host function gave, whose own detail goes
    /// with it.
    Refused(u32),
    /// Taken. A handler passes on the action that was written instead; a parser or
    /// policy answers with the envelope that was written.
    Write(Writer),
}

impl Answer {
    /// Rejects with a detail.
    pub fn reject(reason: u32, detail: fmt::Arguments) -> Answer {
        Answer::Reject { reason, detail: Text::new(detail) }
    }
}

/// Rejects an action: `reject!(REASON_INVALID_PAYLOAD, "unknown mode '{}'", mode)`.
#[macro_export]
macro_rules! reject {
    ($reason:expr, $($detail:tt)+) => {
        $crate::Answer::reject($reason, ::core::format_args!($($detail)+))
    };
}

/// Text of at most 512 bytes, which is what the host keeps of a detail. More is cut,
/// between characters.
#[derive(Clone)]
pub struct Text {
    bytes: [u8; Text::MAX],
    len: usize,
}

impl Text {
    const MAX: usize = 512;

    /// Formats a text.
    #[inline(never)]
    pub fn new(args: fmt::Arguments) -> Text {
        let mut t = Text { bytes: [0; Text::MAX], len: 0 };
        let _ = t.write_fmt(args); // an error says that the rest was cut
        t
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        crate::value::text(self.as_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl Write for Text {
    /// Fails once the text is full, so that formatting stops there.
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let mut n = s.len().min(Text::MAX - self.len);
        while !s.is_char_boundary(n) {
            n -= 1;
        }
        if let (Some(to), Some(from)) = (self.bytes.get_mut(self.len..self.len + n), s.as_bytes().get(..n)) {
            to.copy_from_slice(from);
            self.len += n;
        }
        if n < s.len() {
            return Err(fmt::Error);
        }
        Ok(())
    }
}
