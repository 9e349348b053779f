//! Priorities must not rise along the token axis: a prefix cache can serve a block
//! only when all blocks before it are there, so protecting a later one more than an
//! earlier one protects nothing.

use crate::MAX_DIRECTIVES;
use core::fmt;

/// Where a directive begins, and its priority.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Point {
    start: u64,
    tail: u32, // 1: the generated tail, behind every start, even the last there is
    priority: u32,
}

impl Point {
    pub fn at(start: u64, priority: u32) -> Point {
        Point { start, tail: 0, priority }
    }

    pub fn tail(priority: u32) -> Point {
        Point { start: u64::MAX, tail: 1, priority }
    }

    fn behind(&self, other: &Point) -> bool {
        self.start > other.start || self.tail > other.tail
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "priority {} ", self.priority)?;
        if self.tail != 0 {
            return f.write_str("in the output");
        }
        write!(f, "at start {}", self.start)
    }
}

/// Two directives that follow each other, of which the second has the higher priority.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Rise(Point, Point);

impl fmt::Display for Rise {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} is above {}", self.1, self.0)
    }
}

/// Directives along the token axis; of those that begin at the same token, the earlier
/// one comes first.
pub struct Order {
    points: [Point; MAX_DIRECTIVES],
    len: usize,
}

impl Order {
    pub fn new() -> Order {
        Order { points: [Point { start: 0, tail: 0, priority: 0 }; MAX_DIRECTIVES], len: 0 }
    }

    pub fn clear(&mut self) {
        self.len = 0;
    }

    fn points(&self) -> &[Point] {
        self.points.get(..self.len).unwrap_or(&[])
    }

    /// Takes in one more, at most MAX_DIRECTIVES. Most come in order and go to the end.
    pub fn add(&mut self, point: Point) {
        let at = match self.points().last() {
            Some(last) if last.behind(&point) => self.points().partition_point(|p| !p.behind(&point)),
            _ => self.len,
        };
        if self.len < MAX_DIRECTIVES && at <= self.len {
            self.points.copy_within(at..self.len, at + 1);
            self.points[at] = point;
            self.len += 1;
        }
    }

    pub fn rise(&self) -> Option<Rise> {
        let mut points = self.points().iter();
        let mut last = points.next()?;
        for point in points {
            if point.priority > last.priority {
                return Some(Rise(*last, *point));
            }
            last = point;
        }
        None
    }

    /// What would rise if the later directives came on top of these.
    pub fn rise_with(&self, later: &Order) -> Option<Rise> {
        let (mut mine, mut theirs) = (self.points().iter().peekable(), later.points().iter().peekable());
        let mut last: Option<&Point> = None;
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(m), Some(t)) if m.behind(t) => theirs.next(),
                (Some(_), _) => mine.next(),
                _ => theirs.next(),
            }?;
            match last {
                Some(l) if next.priority > l.priority => return Some(Rise(*l, *next)),
                _ => last = Some(next),
            }
        }
    }

    /// Takes in all of a later order.
    pub fn merge(&mut self, later: &Order) {
        for point in later.points() {
            self.add(*point);
        }
    }
}
