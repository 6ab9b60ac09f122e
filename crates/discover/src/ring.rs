//! The last windows, each by itself: fading sums cannot tell how sure a cost is.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::columns::Column;
use crate::rows::{Row, Work};

/// What was worked on in a while, and what was used.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    number: u64,
    pub(crate) work: Work,
    pub(crate) used: Vec<f64>,
    /// Steps of it whose use was read.
    pub(crate) steps: u32,
}

impl Window {
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// Short windows that are kept: of a second, half an hour.
const MOST_SHORT: usize = 1800;
/// Coarse windows that are kept: with the shortest, two hours.
const MOST_COARSE: usize = 1440;

/// How long windows are that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// One step.
    Step,
    /// So many coarse windows.
    Coarse(u64),
}

/// Short windows of the last while, coarse ones of a longer one.
#[derive(Clone, Debug)]
pub(crate) struct Rings {
    short: Ring,
    coarse: Ring,
}

impl Rings {
    /// Of so many steps is a coarse window.
    pub(crate) fn new(steps: u64) -> Self {
        Self { short: Ring::new(1, MOST_SHORT), coarse: Ring::new(steps, MOST_COARSE) }
    }

    /// A step, and what was used in it.
    pub(crate) fn add(&mut self, step: u64, row: &Row, used: &[f64]) {
        self.short.add(step, row, used);
        self.coarse.add(step, row, used);
    }

    /// The windows of this length, each in parts; the last may not be over.
    pub(crate) fn windows(&self, length: Length) -> Vec<Vec<&Window>> {
        match length {
            Length::Step => self.short.together(1),
            Length::Coarse(times) => self.coarse.together(times),
        }
    }

    /// Of the last so many steps.
    pub(crate) fn recent(&self, steps: u64) -> Self {
        Self { short: self.short.recent(steps), coarse: self.coarse.recent(steps) }
    }

    /// Short windows, the oldest first.
    pub(crate) fn short(&self) -> impl Iterator<Item = &Window> {
        self.short.windows.iter()
    }

    /// Coarse windows, the oldest first; the last may not be over.
    pub(crate) fn coarse(&self) -> &VecDeque<Window> {
        &self.coarse.windows
    }

    /// Steps of a coarse window.
    pub(crate) const fn coarse_steps(&self) -> u64 {
        self.coarse.steps
    }

    /// Steps that were read.
    pub(crate) fn steps(&self) -> u64 {
        self.coarse.windows.iter().map(|window| u64::from(window.steps)).sum()
    }

    pub(crate) fn fold(&mut self, column: Column) {
        self.short.fold(column);
        self.coarse.fold(column);
    }
}

/// The last windows of one length.
#[derive(Clone, Debug)]
struct Ring {
    /// Steps of a window.
    steps: u64,
    /// Windows that are kept.
    most: usize,
    windows: VecDeque<Window>,
}

impl Ring {
    fn new(steps: u64, most: usize) -> Self {
        Self { steps, most, windows: VecDeque::new() }
    }

    /// A step, and what was used in it.
    fn add(&mut self, step: u64, row: &Row, used: &[f64]) {
        let number = step / self.steps;
        if self.windows.back().is_none_or(|last| last.number != number) {
            // Also what is too old by its time, as nothing was read since.
            let is_old = |window: &Window| window.number + self.most as u64 <= number;
            while self.windows.front().is_some_and(is_old) {
                self.windows.pop_front();
            }
            let used = vec![0.0; used.len()];
            let work = Work::default();
            self.windows.push_back(Window { number, work, used, steps: 0 });
        }
        let last = self.windows.back_mut().expect("one was put in if there was none");
        last.work.add(&row.work);
        last.used.iter_mut().zip(used).for_each(|(sum, used)| *sum += used);
        last.steps += 1;
    }

    /// By their number: a while in which nothing was read is part of it.
    fn recent(&self, steps: u64) -> Self {
        let last = self.windows.back().map_or(0, |window| window.number);
        let is_old = |window: &&Window| window.number + steps / self.steps <= last;
        let windows = self.windows.iter().skip_while(is_old).cloned().collect();
        Self { windows, ..*self }
    }

    /// So many windows make one, by their time: those with few readings among them are as good as others, as
    /// both sides of the equation are of the same steps.
    fn together(&self, times: u64) -> Vec<Vec<&Window>> {
        let mut groups: Vec<Vec<&Window>> = Vec::new();
        for window in &self.windows {
            match groups.last_mut() {
                Some(group) if group[0].number / times == window.number / times => {
                    group.push(window);
                }
                _ => groups.push(vec![window]),
            }
        }
        groups
    }

    fn fold(&mut self, column: Column) {
        self.windows.iter_mut().for_each(|window| window.work.fold(column));
    }
}
