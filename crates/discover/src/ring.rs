//! Stores the last windows one by one. The weighted sums of `sums` are not enough, because they do
//! not show how certain a cost is.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::columns::Column;
use crate::rows::{Row, Work};

/// The work and the use of resources in one window.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    number: u64,
    pub(crate) work: Work,
    pub(crate) used: Vec<f64>,
    /// The number of steps in the window whose use was read.
    pub(crate) steps: u32,
}

impl Window {
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }
}

/// The maximum number of short windows that are kept. With a step of a second, they cover half an
/// hour.
const MOST_SHORT: usize = 1800;
/// The maximum number of coarse windows that are kept. With the shortest coarse window, they cover
/// two hours.
const MOST_COARSE: usize = 1440;

/// The length of windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// One step: a short window.
    Step,
    /// The given number of coarse windows, taken together as one window.
    Coarse(u64),
}

/// The short windows of the recent past, and the coarse windows of a longer past.
#[derive(Clone, Debug)]
pub(crate) struct Rings {
    short: Ring,
    coarse: Ring,
}

impl Rings {
    /// Creates rings whose coarse windows have `steps` steps.
    pub(crate) fn new(steps: u64) -> Self {
        Self { short: Ring::new(1, MOST_SHORT), coarse: Ring::new(steps, MOST_COARSE) }
    }

    /// Adds the work of the step with the number `step`, and the use of each resource in the step.
    pub(crate) fn add(&mut self, step: u64, row: &Row, used: &[f64]) {
        self.short.add(step, row, used);
        self.coarse.add(step, row, used);
    }

    /// Returns the windows of this length, each as a list of the windows that it consists of. The
    /// last may be incomplete.
    pub(crate) fn windows(&self, length: Length) -> Vec<Vec<&Window>> {
        match length {
            Length::Step => self.short.together(1),
            Length::Coarse(times) => self.coarse.together(times),
        }
    }

    /// Returns rings with only the windows of the last `steps` steps.
    pub(crate) fn recent(&self, steps: u64) -> Self {
        Self { short: self.short.recent(steps), coarse: self.coarse.recent(steps) }
    }

    /// Returns the short windows, the oldest first.
    pub(crate) fn short(&self) -> impl Iterator<Item = &Window> {
        self.short.windows.iter()
    }

    /// Returns the coarse windows, the oldest first. The last may be incomplete.
    pub(crate) fn coarse(&self) -> &VecDeque<Window> {
        &self.coarse.windows
    }

    /// Returns the number of steps of a coarse window.
    pub(crate) const fn coarse_steps(&self) -> u64 {
        self.coarse.steps
    }

    /// Returns the number of steps whose use was read, over all windows.
    pub(crate) fn steps(&self) -> u64 {
        self.coarse.windows.iter().map(|window| u64::from(window.steps)).sum()
    }

    pub(crate) fn fold(&mut self, column: Column) {
        self.short.fold(column);
        self.coarse.fold(column);
    }
}

/// The last windows of one length, as a ring.
#[derive(Clone, Debug)]
struct Ring {
    /// The number of steps in one window.
    steps: u64,
    /// The maximum number of windows that are kept.
    most: usize,
    windows: VecDeque<Window>,
}

impl Ring {
    fn new(steps: u64, most: usize) -> Self {
        Self { steps, most, windows: VecDeque::new() }
    }

    /// Adds the work of a step, and the use of each resource in the step.
    fn add(&mut self, step: u64, row: &Row, used: &[f64]) {
        let number = step / self.steps;
        if self.windows.back().is_none_or(|last| last.number != number) {
            // After a gap in the readings, several windows may be too old.
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

    /// Returns a ring with only the windows of the last `steps` steps. Windows are chosen by
    /// number, so that a gap in the readings counts as time.
    fn recent(&self, steps: u64) -> Self {
        let last = self.windows.back().map_or(0, |window| window.number);
        let is_old = |window: &&Window| window.number + steps / self.steps <= last;
        let windows = self.windows.iter().skip_while(is_old).cloned().collect();
        Self { windows, ..*self }
    }

    /// Groups the windows, `times` windows to a group, aligned in time. A group with few readings
    /// is not worse than the others, because its work and its use cover the same steps.
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
