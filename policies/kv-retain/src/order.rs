//! Priorities must not rise along the token axis: a prefix cache can serve a block
//! only when all blocks before it are there, so protecting a later one more than an
//! earlier one protects nothing.

use core::fmt;

/// The highest priority.
pub const MAX_PRIORITY: usize = 100;

/// Where a directive stands: by its first token, then by its order in the envelope.
/// The generated tail comes after every token position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    start: u64,
    order: u32,
}

/// Added to `order` for the generated tail, so that it is behind even the last start.
const TAIL: u32 = 1 << 16;

impl Place {
    pub fn at(start: u64, order: u32) -> Place {
        Place { start, order }
    }

    pub fn tail(order: u32) -> Place {
        Place { start: u64::MAX, order: TAIL + order }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.order >= TAIL {
            return f.write_str("in the output");
        }
        write!(f, "at start {}", self.start)
    }
}

/// Two directives in the wrong order: the one further back has the higher priority.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rise {
    front: (Place, usize),
    back: (Place, usize),
}

impl fmt::Display for Rise {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "priority {} {} is above priority {} {}", self.back.1, self.back.0, self.front.1, self.front.0)
    }
}

const FIRST: Place = Place { start: 0, order: 0 };
const LAST: Place = Place { start: u64::MAX, order: u32::MAX };

/// The frontmost and the rearmost place of each priority: enough to see a rise in one
/// pass over the priorities, however many directives there are.
#[derive(Clone)]
pub struct Order {
    span: [(Place, Place); MAX_PRIORITY + 1],
}

impl Order {
    pub fn new() -> Order {
        Order { span: [(LAST, FIRST); MAX_PRIORITY + 1] }
    }

    pub fn add(&mut self, place: Place, priority: usize) {
        if let Some((front, rear)) = self.span.get_mut(priority) {
            *front = place.min(*front);
            *rear = place.max(*rear);
        }
    }

    pub fn merge(&mut self, other: &Order) {
        for (mine, theirs) in self.span.iter_mut().zip(&other.span) {
            mine.0 = mine.0.min(theirs.0);
            mine.1 = mine.1.max(theirs.1);
        }
    }

    /// Finds a directive that has one of a lower priority in front of it.
    pub fn rise(&self) -> Option<Rise> {
        let mut lower = (LAST, 0);
        for (priority, (front, rear)) in self.span.iter().enumerate() {
            if *front == LAST {
                continue;
            }
            if lower.0 < *rear {
                return Some(Rise { front: lower, back: (*rear, priority) });
            }
            if *front < lower.0 {
                lower = (*front, priority);
            }
        }
        None
    }
}
